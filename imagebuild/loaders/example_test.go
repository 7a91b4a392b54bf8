package loaders_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"drover/imagebuild/loaders"
)

// Loaders are copied from a directory, such as one that packages were unpacked into.
func ExampleInstaller() {
	from, err := os.MkdirTemp("", "loaders-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(from)
	if err := os.WriteFile(filepath.Join(from, "undionly.kpxe"), []byte("a program"), 0o644); err != nil {
		log.Fatal(err)
	}
	dir := filepath.Join(from, "installed")
	if _, err := (&loaders.Installer{From: from, Dir: dir}).Install(context.Background()); err != nil {
		log.Fatal(err)
	}
	list, err := loaders.List(dir)
	for _, l := range list {
		fmt.Println(l.File, "for", l.Firmware)
	}
	fmt.Println(err)
	// Output:
	// undionly.kpxe for [bios]
	// <nil>
}
