// Package browser tests the page of a server (web/page) in a real Chromium: the forms and live
// boots. The server is that of drover serve, without its sockets for nodes: boots are put into its
// table.
//
// With DROVER_SCREENSHOTS=1 the tests keep pictures, and print the folder.
package browser
