package media_test

import (
	"fmt"
	"log"
	"net/netip"
	"os"
	"path/filepath"

	"drover/imagebuild/media"
)

// A CD with the loaders of a directory, for the virtual media of an iLO.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "media-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"shimx64.efi", "grubx64.efi"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a program"), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	loaders, err := os.OpenRoot(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer loaders.Close()
	m, archs, err := media.New(loaders, nil, netip.MustParseAddr("10.28.0.2"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(archs, m.Write(filepath.Join(dir, "boot.iso"), media.ISO))
	// Output: [x64] <nil>
}
