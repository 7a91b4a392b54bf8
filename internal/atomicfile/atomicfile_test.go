package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"drover/internal/atomicfile"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var before fs.FileInfo
	for _, tt := range []struct {
		content string
		same    bool // as the file before
	}{{"one", false}, {"one", true}, {"two", false}} {
		if err := atomicfile.Write(path, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && os.SameFile(before, after) != tt.same {
			t.Errorf("%q: the file is replaced: %v, want %v", tt.content, !os.SameFile(before, after), !tt.same)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != tt.content {
			t.Errorf("got %q, %v, want %q", got, err, tt.content)
		}
		before = after
	}
}

// TestCreate: the file has its mode with setuid, and the target of a link stays.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "file"), filepath.Join(dir, "target")
	if err := errors.Join(os.WriteFile(target, []byte("old"), 0o644), os.Symlink("target", path)); err != nil {
		t.Fatal(err)
	}
	mode := os.ModeSetuid | 0o751
	err := atomicfile.Create(path, mode, func(f *os.File) error {
		_, err := f.WriteString("new")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
		t.Errorf("got %v, %v, want a file of mode %v", info, err, mode)
	}
	for name, want := range map[string]string{path: "new", target: "old"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestCreateFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := atomicfile.Create(path, 0o644, func(*os.File) error { return fs.ErrInvalid })
	if !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("got %v, want %v", err, fs.ErrInvalid)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("got %q, %v, want the old content", got, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}
