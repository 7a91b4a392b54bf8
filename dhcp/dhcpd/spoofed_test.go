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

func (machines) Known(m pools.MAC) bool    { return m == web1 }
func (machines) Declares(m pools.MAC) bool { return m == web1 }

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
