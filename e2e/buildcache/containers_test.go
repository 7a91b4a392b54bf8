package buildcache

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestContainers makes the archives from the sources in a new directory: a cache that has them
// already must not hide that their sources have moved.
func TestContainers(t *testing.T) {
	root, err := SourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := makeContainers(t.Context(), io.Discard, root, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pauseArchive, helloArchive, bothArchive} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if files := untar(t, b); len(files) < 2 {
			t.Errorf("%s: got %d files", name, len(files))
		}
	}
}
