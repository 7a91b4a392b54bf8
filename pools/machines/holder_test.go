package machines_test

import (
	"net/netip"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/machines"
	"drover/pools/resolve"
)

// TestContestedAddress: while another machine leases the address of a node, that machine
// is the one at the address. Finding M10: it got the boot script of the node.
func TestContestedAddress(t *testing.T) {
	at := addr("10.0.1.1")
	leases := &leaseTable{all: []pools.Lease{{MAC: mac(9), Address: at, Node: "node-525400000009", Pool: "lobby", Expires: noon.Add(time.Hour)}}}
	now := noon
	d := &machines.Directory{
		Farm: live{resolve.NewFarm(resolve.Checked{Config: farm.Config, Contested: []netip.Addr{at}})}, Leases: leases, Boots: bootTable{},
		Now: func() time.Time { return now },
	}
	check := func(when string, contested bool, owner pools.MAC) {
		t.Helper()
		p := d.Resolve(resolve.Query{MAC: mac(1), Link: addr("10.0.0.1")})
		if (p.Holder != nil) != contested || p.Address != at {
			t.Errorf("%s: the plan has address %s, held by %+v", when, p.Address, p.Holder)
		}
		if m := d.Of(mac(1)); m.Address.IsValid() == contested || m.Plan.Node != "m1" {
			t.Errorf("%s: %s is at %s", when, m.Plan.Node, m.Address)
		}
		if m, ok := d.At(at); !ok || m.MAC != owner || m.Address != at {
			t.Errorf("%s: at the address is %s (%s)", when, m.MAC, describe(m.Plan))
		}
		for n := byte(1); n < 10; n++ {
			if owned, own := d.Owns(at, mac(n)); !owned || own != (mac(n) == owner || !contested && n == 2) {
				t.Errorf("%s: %s owns the address: %t", when, mac(n), own)
			}
		}
	}
	check("while the lease lasts", true, mac(9))
	now = noon.Add(time.Hour)
	check("after its end", false, mac(1))
	now = noon
	leases.all[0].MAC, leases.all[0].Node = mac(2), "m1"
	check("a lease of the node itself", false, mac(1))
}
