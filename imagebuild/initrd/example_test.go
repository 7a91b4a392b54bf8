package initrd_test

import (
	"fmt"

	"drover/imagebuild/initrd"
	"drover/imagebuild/rootfs"
)

// New returns an error for an image that cannot boot.
func ExampleNew() {
	_, err := initrd.New(rootfs.New(), "6.1.0-9-amd64", initrd.Config{Init: []byte("program"), Modules: []string{"nvme"}})
	fmt.Println(err)
	// Output: the image has no usr/lib/modules/6.1.0-9-amd64: its kernel has no modules to boot with
}
