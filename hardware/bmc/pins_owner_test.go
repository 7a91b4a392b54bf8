package bmc_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"drover/e2e/fixture"
	"drover/hardware/bmc"
)

// TestPinsOwner: pins that root writes into the state directory of a server can be read by
// the user of the server.
func TestPinsOwner(t *testing.T) {
	fixture.Root(t) // who alone gives files away
	dir := t.TempDir()
	if err := os.Chown(dir, 1234, 1235); err != nil {
		t.Fatal(err)
	}
	p := &bmc.Pins{Path: filepath.Join(dir, "known_hosts")}
	if _, err := p.Check("10.1.0.1", "SHA256:x", "10.1.0.1 x", func() ([]string, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 1234 || s.Gid != 1235 || info.Mode().Perm() != 0o600 {
		t.Errorf("owner %d:%d, mode %s", s.Uid, s.Gid, info.Mode())
	}
}
