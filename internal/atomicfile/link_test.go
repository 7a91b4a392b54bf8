package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/internal/atomicfile"
)

// TestRewrite: links of an operator stay, also those over several directories, and files keep
// their modes.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.Mkdir(path("repository"), 0o755),
		os.WriteFile(path("repository/farm.yaml"), []byte("old"), 0o640),
		os.WriteFile(path("file"), []byte("old"), 0o600),
		os.Symlink("repository", path("current")),
		os.Symlink("current/farm.yaml", path("link")),
		os.Symlink("link", path("second")),
		os.Symlink("nowhere", path("dangling")),
		os.Symlink("loop", path("loop")),
	); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, at string
		mode     os.FileMode
		err      string
	}{
		{"file", "file", 0o600, ""},
		{"new", "new", 0o644, ""},
		{"current/new", "repository/new", 0o644, ""},
		{"link", "repository/farm.yaml", 0o640, ""},
		{"second", "repository/farm.yaml", 0o640, ""},
		{"dangling", "", 0, "the symbolic link leads to a file that does not exist"},
		{"loop", "", 0, "too many links"},
		{"repository", "", 0, "not a regular file"},
		{"none/file", "", 0, "no such file"},
	} {
		before, _ := os.Readlink(path(tt.name))
		err := atomicfile.Rewrite(path(tt.name), []byte("new "+tt.name), 0o644)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.err)
		}
		if after, _ := os.Readlink(path(tt.name)); after != before {
			t.Errorf("%s: a link to %q, want %q", tt.name, after, before)
		}
		if tt.err != "" {
			continue
		}
		info, err := os.Lstat(path(tt.at))
		if err != nil || info.Mode() != tt.mode {
			t.Errorf("%s: got %v, %v, want mode %v", tt.at, info, err, tt.mode)
		}
		if got, err := os.ReadFile(path(tt.at)); err != nil || string(got) != "new "+tt.name {
			t.Errorf("%s: got %q, %v", tt.at, got, err)
		}
	}
	if err := atomicfile.Rewrite("/dev/null", nil, 0o644); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("/dev/null: got %v", err)
	}
}
