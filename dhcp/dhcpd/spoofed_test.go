package dhcpd_test

import (
	"net/netip"
	"testing"

	"drover/dhcp"
	"drover/pools"
)

// machines has web1 at 10.28.36.1, and the node of a pod at 10.28.0.254.
type machines struct{}

func (machines) Owns(a netip.Addr, m pools.MAC) (owned, own bool) {
	switch a.String() {
	case "10.28.36.1":
		return true, m == web1
	case "10.28.0.254":
		return true, false
	}
	return false, false
}

func (machines) Leased(pools.MAC) []netip.Addr { return nil }
func (machines) Declares(m pools.MAC) bool     { return m == web1 }

// TestSpoofedByInfiniBand: the MAC that stands for a client identifier proves nothing, also
// when chaddr is that of the frame.
func TestSpoofedByInfiniBand(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	s.Machines = machines{}
	r.serve(s)
	r.plug(foreign)
	r.ip("-n", r.cli, "addr", "add", "10.28.0.200/16", "dev", "cli")
	r.reach(r.udp("0.0.0.0:68"))
	for name, chaddr := range map[string]pools.MAC{"of the frame": foreign, "empty": {}} {
		b := message(web1, request, ciaddr("10.28.36.1"), option(61, 0x52, 0x54, 0, 3, 0, 0, 0, 1)).ToBytes()
		b[1], b[2] = 32, 0
		copy(b[28:], chaddr[:])
		r.cardAt(foreign, "10.28.36.1", "10.28.0.2")(b)
		if x := r.next(); x.Decision != dhcp.Spoofed || x.MAC != web1 {
			t.Errorf("chaddr %s: got %q from %s, want %q", name, x.Decision, x.MAC, dhcp.Spoofed)
		}
	}
}

// TestSpoofedOverTheWire: what a node sends in another's name reaches nobody.
func TestSpoofedOverTheWire(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	s.Machines = machines{}
	r.serve(s)
	relay := r.relay() // with the address of a node
	write(t, relay, message(web1, discover, giaddr("10.28.0.254")).ToBytes())
	if x := r.next(); x.Decision != dhcp.Spoofed || x.Reply != "" || x.MAC != web1 || x.Why == "" {
		t.Errorf("got %q from %s, reply %q; want %q", x.Decision, x.MAC, x.Reply, dhcp.Spoofed)
	}
}
