package server

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"drover/e2e/farmtest"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
	"drover/state"
)

// The directory of a server finds a node that is identified by its switch port, and
// unknown hardware, by the leases on disk.
func TestDirectoryOfTheState(t *testing.T) {
	store, live := farmtest.Open(t, testConfig)
	d := newDirectory(live, store)
	port, unknown := pools.MAC{2, 5: 7}, pools.MAC{0x52, 0x54, 0, 0x77, 1, 8}
	if p := d.Named("m2"); p != nil {
		t.Errorf("no machine has been at the port, and there is a plan: %+v", p)
	}
	for _, q := range []resolve.Query{
		{MAC: port, Link: netip.MustParseAddr("10.29.0.1"), CircuitID: "eth7"},
		{MAC: unknown, Link: netip.MustParseAddr("10.28.0.1")},
	} {
		p := d.Resolve(q)
		addr := p.Address
		if p.CatchAll {
			addr = netip.MustParseAddr("10.28.72.99")
		}
		if err := lease(store, p, addr); err != nil {
			t.Fatal(err)
		}
	}
	for addr, want := range map[string]string{"10.28.0.10": "m1", "10.29.0.15": "m2", "10.28.72.99": "node-525400770108"} {
		m, ok := d.At(netip.MustParseAddr(addr))
		if !ok || m.Plan == nil || m.Plan.Node != want {
			t.Errorf("at %s: got %+v, want %s", addr, m, want)
			continue
		}
		if p := d.Named(want); p == nil || p.MAC != m.MAC || d.Of(m.MAC).Address != m.Address {
			t.Errorf("%s is %+v by its name, %+v by its MAC, %+v by its address", want, p, d.Of(m.MAC), m)
		}
	}
}

func lease(store *state.Store, p *resolve.Plan, addr netip.Addr) error {
	wait, err := store.Leases.Commit(p, addr, time.Now())
	if err != nil {
		return err
	}
	return wait()
}

// BenchmarkNamed finds a node by its switch port among 60 000 leases.
func BenchmarkNamed(b *testing.B) {
	store, err := state.Open(b.TempDir(), state.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	farm, err := config.Parse("drover.yaml", []byte(testConfig))
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	var errs []error
	for n := range 60_000 {
		mac := pools.MAC{2, 1, 3: byte(n >> 16), 4: byte(n >> 8), 5: byte(n)}
		p := &resolve.Plan{MAC: mac, Node: fmt.Sprint("m", n), Pool: "web", Lease: pools.Duration(time.Hour)}
		wait, err := store.Leases.Commit(p, netip.AddrFrom4([4]byte{10, 30, byte(n >> 8), byte(n)}), now)
		errs = append(errs, err)
		if n%500 == 0 && err == nil {
			errs = append(errs, wait())
		}
	}
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	d := newDirectory(nil, store)
	d.Farm = fixedFarm{farm}
	for b.Loop() {
		if p := d.Named("m2"); p == nil {
			b.Fatal("no plan")
		}
	}
}

type fixedFarm struct{ farm *resolve.Farm }

func (f fixedFarm) Farm() *resolve.Farm { return f.farm }
