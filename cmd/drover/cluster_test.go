package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"drover/e2e/fixture"
	"drover/internal/atomicfile"
)

// The service can read what drover cluster prepare --write makes, the first and the second
// time: the group that root gave to the directory, or to the file, can.
func TestCredentialsMode(t *testing.T) {
	fixture.Root(t) // only root may change owners
	const group = 1235
	for _, tt := range []struct {
		name     string
		uid, gid int
		want     os.FileMode
	}{
		{"root and the service's group", 0, group, 0o640},
		{"root alone", 0, 0, 0o600},
		{"the service", 1234, group, 0o600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chown(dir, tt.uid, tt.gid); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "tenant-a.kubeconfig")
			for _, token := range []string{"first", "second"} {
				err := atomicfile.Write(file, []byte(token), credentialsMode(file))
				info, statErr := os.Stat(file)
				if err := errors.Join(err, statErr); err != nil {
					t.Fatal(err)
				}
				s := info.Sys().(*syscall.Stat_t)
				if info.Mode() != tt.want || int(s.Uid) != tt.uid || int(s.Gid) != tt.gid {
					t.Errorf("%s: mode %s, owner %d:%d, want %s, %d:%d", token, info.Mode(), s.Uid, s.Gid, tt.want, tt.uid, tt.gid)
				}
			}
		})
	}
}
