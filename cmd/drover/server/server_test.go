package server

import (
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/state"
)

const testConfig = `server: {interfaces: [lo], address: 10.28.0.2, dhcp: full}
subnets:
  - {cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.1], domain: example.org}
  - {cidr: 10.29.0.0/16, router: 10.29.0.1}
tags: {all: {dhcpOptions: {ntp-server: 10.28.0.1, "43": "hex:0102"}}}
pools:
  - name: web
    image: debian-12
    nodes:
      - {name: m1, macs: ["52:54:00:77:01:01"], ip: 10.28.0.10}
      - {name: m4, macs: ["52:54:00:77:01:09"], ip: 10.28.0.14, ignore: true}
      - {name: m2, match: {circuitID: eth7}, ip: 10.29.0.15}
  - {name: rest, catchall: true, image: debian-12, range: 10.28.72.10-10.28.72.250, lease: 5m}
`

// testServer is a server of testConfig that listens nowhere.
func testServer(t *testing.T) *Server {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("drover.yaml", []byte(testConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// openSite makes the farm of a config, and its state, in a directory of its own.
func openSite(t *testing.T, text string) (*state.Store, *config.Live) {
	t.Helper()
	t.Chdir(t.TempDir())
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
	live, err := config.NewLive("drover.yaml", store.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	return store, live
}

// Counting a packet costs no memory.
func TestCountingIsCheap(t *testing.T) {
	s := testServer(t)
	x := dhcp.Exchange{Type: "REQUEST", Decision: dhcp.Acknowledged}
	if n := testing.AllocsPerRun(100, func() { s.metrics.exchange(x) }); n != 0 {
		t.Errorf("got %v allocations for each packet", n)
	}
}

// An address is its node's, whichever of its cards asks; one of a range belongs
// to who leased it.
func TestOwner(t *testing.T) {
	s := testServer(t)
	stranger, leased := pools.MAC{0x52, 0x54, 0, 0x77, 1, 9}, netip.MustParseAddr("10.28.72.99")
	plan := &pools.Plan{Node: "node-525400770109", Pool: "rest", MAC: stranger, Lease: pools.Duration(time.Hour)}
	wait, err := s.Store.Leases.Commit(plan, leased, time.Now())
	if err != nil || wait() != nil {
		t.Fatal("no lease", err)
	}
	m1 := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}
	for _, tt := range []struct {
		address    string
		mac        pools.MAC
		owned, own bool
	}{
		{"10.28.0.10", m1, true, true},
		{"10.28.0.10", stranger, true, false},
		{"10.28.72.99", stranger, true, true},
		{"10.28.72.99", m1, true, false},
		{"10.28.0.200", m1, false, false},
	} {
		if owned, own := s.addresses.owner(netip.MustParseAddr(tt.address), tt.mac); owned != tt.owned || own != tt.own {
			t.Errorf("%s of %s: got owned %v, own %v; want %v, %v", tt.address, tt.mac, owned, own, tt.owned, tt.own)
		}
	}
}
