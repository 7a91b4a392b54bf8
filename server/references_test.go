package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// TestReadReferences: files below the directory of the config alone, regular ones, of a
// bounded size; Kubernetes mounts them as links.
func TestReadReferences(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config")
	for name, content := range map[string]string{"files/motd": "hello\n", "..data/key": "secret", "big": strings.Repeat("x", maxReference+1), "../outside": "no"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"key": "..data/key", "out": "../outside", "absolute": filepath.Join(dir, "../outside")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	farm := resolve.NewFarm(resolve.Checked{Source: filepath.Join(dir, "drover.yaml")})
	refs := references{farm: func() *resolve.Farm { return farm }, clusters: &kube.Clusters{}}
	for name, want := range map[string]string{"files/motd": "hello\n", "key": "secret"} {
		if got, err := refs.Read(t.Context(), pools.Reference{FromFile: name}); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"none", "files", "big", "fifo", "out", "absolute", "../outside", "/etc/hostname"} {
		if got, err := refs.Read(t.Context(), pools.Reference{FromFile: name}); err == nil || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %d bytes, %v, want an error without the server's paths", name, len(got), err)
		}
	}
	ref := pools.SecretRef{Namespace: "drover", Name: "files", Key: "tls.key"}
	if _, err := refs.Read(t.Context(), pools.Reference{FromSecret: ref}); err == nil {
		t.Error("a Secret without an admin cluster: got no error")
	}
}
