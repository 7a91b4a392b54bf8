package server

import (
	"fmt"
	"net/netip"
	"testing"

	"drover/pools"
	"drover/pools/resolve"
)

// TestAuthoritative: unknown hardware that comes with an address of another server gets
// a NAK, and silence from a pool that is not authoritative. Without a record of a client
// that was restarted both are silent (RFC 2131, section 4.3.2); one that renews keeps a
// free address of an authoritative pool.
func TestAuthoritative(t *testing.T) {
	none, us, other := netip.Addr{}, serverAddress, netip.MustParseAddr("10.28.0.3")
	at := netip.MustParseAddr
	for _, tt := range []struct {
		name                        string
		serverID, requested, ciaddr netip.Addr
		replies                     [2]string // of a pool that is authoritative, and of one that is not
	}{
		{"comes back with an address of another network", none, at("192.168.1.7"), none, [2]string{"NAK", ""}},
		{"comes back with one of the subnet", none, at("10.28.40.1"), none, [2]string{"NAK", ""}},
		{"comes back with a free one of the range", none, at("10.28.72.50"), none, [2]string{"", ""}},
		{"repeats it", none, at("10.28.72.50"), none, [2]string{"", ""}},
		{"comes back with one of another machine", none, at("10.28.72.9"), none, [2]string{"", ""}},
		{"comes back with one of a node", none, at("10.28.36.1"), none, [2]string{"NAK", ""}},
		{"rebinds an address of another network", none, none, at("192.168.1.7"), [2]string{"NAK", ""}},
		{"rebinds one of the subnet", none, none, at("10.28.40.1"), [2]string{"NAK", ""}},
		{"rebinds one of another machine", none, none, at("10.28.72.9"), [2]string{"NAK", ""}},
		{"chose another server", other, at("10.28.72.51"), none, [2]string{"", ""}},
		{"chose this server, for an address of the subnet", us, at("10.28.40.1"), none, [2]string{"NAK", "NAK"}},
	} {
		for i, field := range []string{"", ", authoritative: false"} {
			t.Run(tt.name+field, func(t *testing.T) {
				w := newWire(t, pools.DHCPFull, fmt.Sprintf(`  - {name: web, image: a, nodes: [{name: m1, macs: ["52:54:00:77:09:09"], ip: 10.28.36.1}]}
  - {name: lobby, catchall: true, image: b, range: 10.28.72.1-10.28.72.99%s}
`, field))
				w.holds(pools.MAC{2, 9}, at("10.28.72.9"))
				if _, x := w.send(w.request(system, tt.serverID, tt.requested, tt.ciaddr)); x.Reply != tt.replies[i] {
					t.Errorf("got %q (%q, %s), want %q", x.Reply, x.Decision, x.Why, tt.replies[i])
				}
				w.usesItsLease()
				w.mac = pools.MAC{0x52, 0x54, 0, 0x77, 9, 9}
				if _, x := w.send(w.request(system, none, at("10.28.40.1"), none)); x.Reply != "NAK" {
					t.Errorf("a declared node with a wrong address: got %q (%q)", x.Reply, x.Decision)
				}
			})
		}
	}
}

// TestRebindWithoutRecord: a client that rebinds a free address of a range of which no
// lease is known keeps it, unless another server may have leased it.
func TestRebindWithoutRecord(t *testing.T) {
	at := netip.MustParseAddr("10.28.72.50")
	for field, want := range map[string]string{"": "ACK", ", authoritative: false": ""} {
		w := newWire(t, pools.DHCPFull, fmt.Sprintf("  - {name: lobby, catchall: true, image: b, range: 10.28.72.1-10.28.72.99%s}\n", field))
		if _, x := w.send(w.request(system, netip.Addr{}, netip.Addr{}, at)); x.Reply != want {
			t.Errorf("%q: got %q (%q, %s), want %q", field, x.Reply, x.Decision, x.Why, want)
		}
		w.usesItsLease()
	}
}

// holds gives another machine a lease.
func (w *wire) holds(mac pools.MAC, a netip.Addr) {
	w.Helper()
	p := w.server.Machines.Resolve(resolve.Query{MAC: mac, Link: serverAddress})
	if err := lease(w.server.Store, p, a); err != nil {
		w.Fatal(err)
	}
}

// usesItsLease leases an address, renews it and comes back with it, whatever the pool.
func (w *wire) usesItsLease() {
	w.Helper()
	w.boot(system)
	for name, ack := range map[string]bool{"": true, "another": false} {
		a := w.address
		if !ack {
			a = netip.MustParseAddr("10.28.72.98")
		}
		for _, packet := range []struct{ requested, ciaddr netip.Addr }{{a, netip.Addr{}}, {netip.Addr{}, a}} {
			if _, x := w.send(w.request(system, netip.Addr{}, packet.requested, packet.ciaddr)); (x.Reply == "ACK") != ack {
				w.Errorf("with its lease, %s address %s: got %q (%q)", name, a, x.Reply, x.Decision)
			}
		}
	}
}
