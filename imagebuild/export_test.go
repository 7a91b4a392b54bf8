package imagebuild

// ParseManifest is parseManifest.
var ParseManifest = parseManifest
