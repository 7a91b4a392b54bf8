package oci_test

import (
	"fmt"

	"drover/imagebuild/oci"
)

func ExampleParsePlatform() {
	p, err := oci.ParsePlatform("linux/arm/v7")
	fmt.Println(p.Architecture, p.Variant, err)
	_, err = oci.ParsePlatform("amd64")
	fmt.Println(err)
	// Output:
	// arm v7 <nil>
	// platform "amd64" is not of the form linux/ARCH or linux/ARCH/VARIANT
}
