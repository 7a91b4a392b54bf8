package imagebuild_test

import (
	"errors"
	"fmt"
	"io/fs"

	"drover/imagebuild"
)

// Check finds mistakes before a build begins.
func ExampleBuilder_Check() {
	b := imagebuild.Builder{
		Name:     "debian-12",
		Source:   "oci:node:v7",
		Images:   "/var/lib/drover/images",
		Init:     "/usr/lib/drover/drover-init",
		Excludes: []string{"usr/share/doc", "**/*.bak"},
	}
	fmt.Println(b.Check())
	b.Source = "debian:12"
	fmt.Println(b.Check())
	// Output:
	// <nil>
	// source "debian:12" is not one of dir:PATH, tar:FILE, oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:TAG] or docker://IMAGE
}

// A reference is the name of an image, or the name with the ID of one generation.
func ExampleDir_Lookup() {
	images := imagebuild.Open("/nonexistent")
	_, err := images.Lookup("debian-12")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	_, err = images.Lookup("debian-12@sha256:12")
	fmt.Println(err)
	// Output:
	// true
	// image "debian-12@sha256:12": want NAME@ID, where ID has 12 to 64 lower-case hex digits: drover image list shows them
}
