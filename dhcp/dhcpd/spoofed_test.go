package dhcpd_test

import (
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/pools"
)

// web1 has 10.28.36.1 in these tests, and no other client has an address.
func ownedByWeb1(a netip.Addr, m pools.MAC) (owned, own bool) {
	owned = a == netip.MustParseAddr("10.28.36.1")
	return owned, owned && (m == web1 || m == web1b)
}

func TestSpoofed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   string
		packet *dhcpv4.DHCPv4
		mode   pools.DHCPMode
		want   bool
	}{
		{"firmware", "0.0.0.0", message(web1, discover), pools.DHCPFull, false},
		{"a pod plays the firmware of its node", "10.28.36.1", message(web1, discover), pools.DHCPFull, true},
		{"and that of another machine", "10.28.36.1", message(stray, discover), pools.DHCPFull, true},
		{"and fills in its address", "10.28.36.1", message(web1, discover, ciaddr("10.28.36.1")), pools.DHCPFull, true},
		{"a pod plays a relay agent", "10.28.36.1", message(stray, discover, giaddr("10.28.36.1")), pools.DHCPFull, true},
		{"and claims to be the real one", "10.28.36.1", message(stray, request, giaddr("10.28.0.254")), pools.DHCPFull, true},
		{"a relay agent", "10.28.0.254", message(web1, discover, giaddr("10.28.0.254")), pools.DHCPFull, false},
		{"a node renews", "10.28.36.1", message(web1, request, ciaddr("10.28.36.1")), pools.DHCPFull, false},
		{"its other card renews", "10.28.36.1", message(web1b, request, ciaddr("10.28.36.1")), pools.DHCPProxy, false},
		{"a machine renews an address that is a node's now", "10.28.36.1", message(stray, request, ciaddr("10.28.36.1")), pools.DHCPFull, false},
		{"the same, where its word is all that tells", "10.28.36.1", message(stray, request, ciaddr("10.28.36.1")), pools.DHCPProxy, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &dhcpd.Server{Owner: ownedByWeb1, Responder: dhcp.Responder{Mode: tt.mode}}
			if got := s.Spoofed(tt.packet.ToBytes(), netip.MustParseAddr(tt.from)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if (&dhcpd.Server{}).Spoofed(tt.packet.ToBytes(), netip.MustParseAddr(tt.from)) {
				t.Error("spoofed although no owner is known")
			}
		})
	}
}

// TestSpoofedOverTheWire: what a node sends in another's name reaches nobody.
func TestSpoofedOverTheWire(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	s.Owner = func(a netip.Addr, _ pools.MAC) (owned, own bool) {
		return a == netip.MustParseAddr("10.28.0.254"), false
	}
	r.serve(s)
	relay := r.relay() // with the address of a node
	write(t, relay, message(web1, discover, giaddr("10.28.0.254")).ToBytes())
	if x := r.next(); x.Decision != dhcp.Spoofed || x.Reply != "" || x.MAC != web1 {
		t.Errorf("got %q from %s, reply %q; want %q", x.Decision, x.MAC, x.Reply, dhcp.Spoofed)
	}
}
