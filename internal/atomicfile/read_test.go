package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover/internal/atomicfile"
)

// Low finding: /dev/zero in place of the config was read until the memory ended, and a
// FIFO stopped all changes for good.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(path("file"), []byte("12345678"), 0o600),
		os.WriteFile(path("large"), []byte("123456789"), 0o600),
		os.WriteFile(path("empty"), nil, 0o600),
		os.Symlink("file", path("link")),
		os.Symlink("fifo", path("link to fifo")),
		os.Symlink("nowhere", path("dangling")),
		syscall.Mkfifo(path("fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want, err string }{
		{path("file"), "12345678", ""},
		{path("link"), "12345678", ""},
		{path("empty"), "", ""},
		{path("large"), "", "more than 8 bytes"},
		{path("fifo"), "", "not a regular file (mode p"},
		{path("link to fifo"), "", "not a regular file (mode p"},
		{dir, "", "not a regular file (mode d"},
		{"/dev/zero", "", "not a regular file (mode D"},
		{"/proc/self/status", "", "more than 8 bytes"}, // its size is 0
		{path("dangling"), "", "no such file"},
	} {
		got, err := atomicfile.Read(tt.path, 8)
		if string(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %q, %v; want %q, %q", tt.path, got, err, tt.want, tt.err)
		}
	}
	if _, err := atomicfile.Read(path("none"), 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}
