package pools

// Version is the version of drover. Packages, the chart, the server's image and the log have it from here.
const Version = "0.1.0"
