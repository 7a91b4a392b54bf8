package dhcpd_test

import (
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/pools"
)

// TestBOOTPAndInfiniBand: what has no message type, no cookie or no MAC arrives, and its
// answer too.
func TestBOOTPAndInfiniBand(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	r.serve(s)
	r.plugWith(web1, "10.28.0.200/16")
	next := r.answers()
	bootp := message(web1, discover, func(d *dhcpv4.DHCPv4) { delete(d.Options, 53) }).ToBytes()
	bare := append(append([]byte(nil), bootp[:236]...), make([]byte, 64)...)
	port := message(web1, discover, option(61, 0xff, 0, 0, 0, 0, 0x52, 0x54, 0, 3, 0, 0, 0, 1), func(d *dhcpv4.DHCPv4) {
		d.HWType, d.ClientHWAddr = iana.HWTypeInfiniband, nil
		d.SetBroadcast()
	}).ToBytes()
	for _, tt := range []struct {
		name  string
		from  pools.MAC
		in    []byte
		reply string
		to    string
	}{
		{"BOOTP", web1, bootp, "BOOTREPLY", web1.String() + " 10.28.36.1:68"},
		{"BOOTP without the cookie", web1, bare, "BOOTREPLY", web1.String() + " 10.28.36.1:68"},
		{"InfiniBand behind a gateway", foreign, port, "OFFER", "ff:ff:ff:ff:ff:ff 255.255.255.255:68"},
	} {
		r.card(tt.from)(tt.in)
		to, p := next()
		if x := r.next(); x.Reply != tt.reply || x.MAC != web1 || to != tt.to || p.YourIPAddr.String() != "10.28.36.1" {
			t.Errorf("%s: got %q for %s, %q (%v), to %s", tt.name, x.Reply, x.MAC, x.Decision, x.Err, to)
		}
	}
}

// listed has 10.28.0.254 as a relay agent that the operator lists.
type listed struct{}

func (listed) Routers() []netip.Addr           { return nil }
func (listed) InSubnet(netip.Addr) bool        { return false }
func (listed) InRange(netip.Addr) bool         { return false }
func (listed) ListsRelay(a netip.Addr) bool    { return a.String() == "10.28.0.254" }
func (listed) OneNetwork(_, _ netip.Addr) bool { return false }

// TestRelayPort (RFC 8357): the answer goes to the port that a listed relay agent sends
// from.
func TestRelayPort(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	s.Networks = listed{}
	r.serve(s)
	r.plug(foreign)
	r.ip("-n", r.cli, "addr", "add", "10.28.0.254/16", "dev", "cli")
	relay := r.udp("10.28.0.254:1067")
	write(t, relay, message(web1, discover, giaddr("10.28.0.254"), option(82, 19, 0)).ToBytes())
	if got := read(t, relay); got.YourIPAddr.String() != "10.28.36.1" {
		t.Errorf("got %s", got.Summary())
	}
}
