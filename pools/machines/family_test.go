package machines_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
	"drover/pools/resolve"
)

// TestAddresses: a machine has one address of each family: its node's, else its lease's.
func TestAddresses(t *testing.T) {
	farm := resolve.NewFarm(resolve.Checked{Config: pools.Config{
		Subnets: []pools.Subnet{{CIDR: netip.MustParsePrefix("10.0.0.0/16")}, {CIDR: netip.MustParsePrefix("fd00::/64")}},
		Pools: []pools.Pool{
			{Name: "web", Nodes: []pools.Node{
				{Name: "both", MACs: []pools.MAC{mac(1)}, IP: addr("10.0.0.1"), IP6: addr("fd00::1")},
				{Name: "six", MACs: []pools.MAC{mac(2)}, IP6: addr("fd00::2")},
				{Name: "four", MACs: []pools.MAC{mac(3)}, IP: addr("10.0.0.3")},
			}},
			{Name: "lobby", CatchAll: true, Range: span("10.0.3.1", "10.0.3.9"), Range6: span("fd00::31", "fd00::39")},
		},
	}})
	lease := func(m pools.MAC, a string) pools.Lease {
		return pools.Lease{MAC: m, Address: addr(a), Node: pools.CatchAllName(m), Pool: "lobby", Expires: noon.Add(time.Hour)}
	}
	d := &machines.Directory{
		Farm: live{farm}, Boots: bootTable{}, Now: func() time.Time { return noon },
		Leases:  &leaseTable{all: []pools.Lease{lease(mac(8), "10.0.3.1"), lease(mac(9), "10.0.3.2")}},
		Leases6: &leaseTable{all: []pools.Lease{lease(mac(9), "fd00::31")}},
	}
	for m, want := range map[pools.MAC]string{
		mac(1): "[10.0.0.1 fd00::1]", mac(2): "[fd00::2]", mac(3): "[10.0.0.3]",
		mac(8): "[10.0.3.1]", mac(9): "[10.0.3.2 fd00::31]", mac(7): "[]",
	} {
		if got := fmt.Sprint(d.Addresses(m)); got != want {
			t.Errorf("%s: got %s, want %s", m, got, want)
		}
	}
}

// TestOnePoolForBothFamilies: a machine with leases of IPv4 and IPv6 is in one pool for
// all protocols: that of the lease in force, of two that of its last boot.
func TestOnePoolForBothFamilies(t *testing.T) {
	both := resolve.NewFarm(resolve.Checked{Config: pools.Config{
		Subnets: []pools.Subnet{{CIDR: netip.MustParsePrefix("10.0.0.0/16")}, {CIDR: netip.MustParsePrefix("fd00::/64")}},
		Pools: []pools.Pool{
			{Name: "arm", CatchAll: true, Match: pools.Match{Firmware: pools.UEFIarm64}, Range: span("10.0.2.1", "10.0.2.9"), Range6: span("fd00::21", "fd00::29")},
			{Name: "lobby", CatchAll: true, Range: span("10.0.3.1", "10.0.3.9"), Range6: span("fd00::31", "fd00::39")},
		},
	}})
	name := pools.CatchAllName(mac(9))
	lease := func(a, pool string, left time.Duration) []pools.Lease {
		return []pools.Lease{{MAC: mac(9), Address: addr(a), Node: name, Pool: pool, Expires: noon.Add(left)}}
	}
	for _, tt := range []struct {
		name   string
		v4, v6 []pools.Lease
		booted string // the pool of its last boot
		want   string // by DHCP
		byHTTP string // by HTTP
	}{
		{"only IPv4", lease("10.0.2.1", "arm", time.Hour), nil, "arm", "arm", "arm"},
		{"only IPv6", nil, lease("fd00::21", "arm", time.Hour), "arm", "arm", "arm"},
		{"both", lease("10.0.2.1", "arm", time.Hour), lease("fd00::21", "arm", time.Hour), "arm", "arm", "arm"},
		{"an old lease of IPv6", lease("10.0.2.1", "arm", time.Hour), lease("fd00::31", "lobby", -time.Hour), "arm", "arm", "arm"},
		{"an old lease of IPv4", lease("10.0.3.1", "lobby", -time.Hour), lease("fd00::21", "arm", time.Hour), "", "arm", "arm"},
		{"booted by IPv4", lease("10.0.2.1", "arm", time.Hour), lease("fd00::31", "lobby", time.Hour), "arm", "arm", "arm"},
		{"booted by IPv6", lease("10.0.3.1", "lobby", time.Hour), lease("fd00::21", "arm", time.Hour), "arm", "arm", "arm"},
		{"both have ended", lease("10.0.2.1", "arm", -time.Hour), lease("fd00::21", "arm", -time.Hour), "arm", "lobby", "arm"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &machines.Directory{
				Farm: live{both}, Leases: &leaseTable{all: tt.v4}, Leases6: &leaseTable{all: tt.v6}, Now: func() time.Time { return noon },
				Boots: bootTable{mac(9): boots.Record{MAC: mac(9), Pool: tt.booted, Started: noon.Add(-time.Hour)}},
			}
			for _, q := range []resolve.Query{{MAC: mac(9), Link: addr("10.0.0.1")}, {MAC: mac(9), Link: addr("fd00::1"), IPv6: true}} {
				if p := d.Resolve(q); p == nil || p.Pool != tt.want {
					t.Errorf("DHCP from %s: got %s, want pool %s", q.Link, describe(p), tt.want)
				}
			}
			for family, m := range map[string]machines.Machine{"IPv4": d.Of(mac(9)), "IPv6": d.Of6(mac(9))} {
				if m.Plan == nil || m.Plan.Pool != tt.byHTTP {
					t.Errorf("by %s: got %s, want pool %s", family, describe(m.Plan), tt.byHTTP)
				}
			}
		})
	}
}

func span(first, last string) pools.Range { return pools.Range{First: addr(first), Last: addr(last)} }

// TestSelfMadeAddress: a node that makes its IPv6 address itself is found by it, the one of
// each of its cards.
func TestSelfMadeAddress(t *testing.T) {
	farm := resolve.NewFarm(resolve.Checked{Config: pools.Config{
		Subnets: []pools.Subnet{{CIDR: netip.MustParsePrefix("fd00::/64"), SLAAC: true}},
		Pools:   []pools.Pool{{Name: "web", Nodes: []pools.Node{{Name: "six", MACs: []pools.MAC{mac(2), mac(4)}}}}},
	}})
	booted := bootTable{}
	d := &machines.Directory{Farm: live{farm}, Boots: booted, Leases: &leaseTable{}, Leases6: &leaseTable{}, Now: func() time.Time { return noon }}
	for _, m := range []pools.MAC{mac(4), mac(2)} {
		booted[m] = boots.Record{MAC: m, Started: noon.Add(time.Duration(len(booted)) * time.Minute)}
		own := pools.EUI64(netip.MustParsePrefix("fd00::/64"), m)
		if got := fmt.Sprint(d.Addresses(m)); got != fmt.Sprintf("[%s]", own) {
			t.Errorf("%s: got addresses %s", m, got)
		}
		if got, ok := d.At(own); !ok || got.MAC != m || got.Address != own || got.Plan.Node != "six" {
			t.Errorf("at %s: got %+v, %t", own, got, ok)
		}
		if got := d.Of6(m); got.Address != own || got.Plan.Address6 != own {
			t.Errorf("%s: got %+v", m, got)
		}
		if owned, mine := d.Owns(own, m); !owned || !mine {
			t.Errorf("%s owns %s: got %t, %t", m, own, owned, mine)
		}
	}
	if m, ok := d.At(pools.EUI64(netip.MustParsePrefix("fd00::/64"), mac(9))); ok {
		t.Errorf("an unknown card: got %+v", m)
	}
}
