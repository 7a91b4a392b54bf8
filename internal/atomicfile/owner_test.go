package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"drover/e2e/fixture"
	"drover/internal/atomicfile"
)

// TestOwner: what root writes into the directory of a service belongs to the service, and a
// file that root replaces keeps its owner, unless the caller gives it one.
func TestOwner(t *testing.T) {
	fixture.Root(t) // who alone gives files away
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Chown(dir, 1234, 1235), os.WriteFile(path("config"), []byte("old"), 0o640), os.Chown(path("config"), 0, 1236),
		os.WriteFile(path("appended"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(atomicfile.Write(path("new"), []byte("new"), 0o600), atomicfile.Write(path("config"), []byte("new"), 0o640),
		atomicfile.Own(path("appended")), atomicfile.Create(path("given"), 0o600, func(f *os.File) error { return f.Chown(0, 1237) })); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]uint32{"new": {1234, 1235}, "config": {0, 1236}, "appended": {1234, 1235}, "given": {0, 1237}} {
		info, err := os.Stat(path(name))
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); [2]uint32{s.Uid, s.Gid} != want {
			t.Errorf("%s: owner %d:%d, want %v", name, s.Uid, s.Gid, want)
		}
	}
}
