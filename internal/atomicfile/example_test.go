package atomicfile_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"drover/internal/atomicfile"
)

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "atomicfile-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "token")
	if err := atomicfile.Write(path, []byte("secret\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	content, err := os.ReadFile(path)
	fmt.Printf("%q %v\n", content, err)
	// Output: "secret\n" <nil>
}
