// Package farmtest has farms for tests of packages that need the state too.
package farmtest

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
	"drover/state"
)

// Open returns the state and the live farm of a config, in a new directory. That is the
// working directory, so that the config's name in messages is drover.yaml. It is in RAM where
// that is possible: beside other tests a disk can hang for longer than a server waits for it.
func Open(t testing.TB, text string) (*state.Store, *config.Live) {
	t.Helper()
	t.Chdir(dir(t))
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open("state", state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	live, err := config.NewLive(config.Source{File: "drover.yaml"}, store.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	return store, live
}

// dir returns a directory that is removed at the end of the test.
func dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "drover-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Lease leases an address of a catch-all pool to a machine, for an hour.
func Lease(t testing.TB, table *state.Leases, pool string, mac pools.MAC, addr netip.Addr) {
	t.Helper()
	p := &resolve.Plan{MAC: mac, Pool: pool, CatchAll: true, Range: pools.Range{First: addr, Last: addr}, Lease: pools.Duration(time.Hour)}
	if _, err := table.Commit(p, addr, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// Decline puts an address in quarantine that a machine leases.
func Decline(t testing.TB, table *state.Leases, mac pools.MAC, addr netip.Addr) {
	t.Helper()
	if !table.Decline(&resolve.Plan{MAC: mac}, addr, "in use", time.Now()) {
		t.Fatalf("%s was not declined", addr)
	}
}
