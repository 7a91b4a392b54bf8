package oci_test

import (
	"testing"

	"drover/imagebuild/oci"
)

func TestParsePlatform(t *testing.T) {
	for in, want := range map[string]oci.Platform{
		"":             {OS: "linux", Architecture: "amd64"},
		"linux/arm64":  {OS: "linux", Architecture: "arm64"},
		"linux/arm/v7": {OS: "linux", Architecture: "arm", Variant: "v7"},
	} {
		got, err := oci.ParsePlatform(in)
		if err != nil || !got.Equals(want) {
			t.Errorf("%q: got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"amd64", "linux", "linux/", "windows/amd64", "linux/arm/v7/x", "linux/arm/", "/"} {
		if got, err := oci.ParsePlatform(in); err == nil {
			t.Errorf("%q: got %v, want an error", in, got)
		}
	}
}
