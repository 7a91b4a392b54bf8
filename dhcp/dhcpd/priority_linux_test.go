package dhcpd_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/mdlayher/packet"

	"drover/dhcp/dhcpd"
	"drover/pools"
)

// TestPriorityTag: VLAN 0 is the priority of a frame, not a VLAN (IEEE 802.1Q). Clients and relay
// agents that send it are answered, by the UDP socket and by the observer.
func TestPriorityTag(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	r.serve(s)
	relay := r.relay()
	r.reach(relay)
	conn := r.frames(0)
	send := func(card pools.MAC, src string, dst net.HardwareAddr, to string, port uint16, b []byte) {
		t.Helper()
		f := dhcpd.Frame(card[:], dst, netip.AddrPortFrom(netip.MustParseAddr(src), port), netip.AddrPortFrom(netip.MustParseAddr(to), 67), b)
		f = slices.Concat(f[:12], []byte{0x81, 0, 0x60, 0}, f[12:]) // priority 3
		if _, err := conn.WriteTo(f, &packet.Addr{HardwareAddr: dst}); err != nil {
			t.Fatal(err)
		}
	}
	everybody := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	send(stray, "0.0.0.0", everybody, "255.255.255.255", 68, here(stray, discover))
	if x := r.next(); x.MAC != stray || x.Reply != "OFFER" {
		t.Errorf("a client: got %q of %s (%v %s)", x.Decision, x.MAC, x.Err, x.Why)
	}
	for _, when := range []string{"before it is confirmed", "and then"} {
		send(foreign, "10.28.0.254", serverMAC[:], serverAddr.String(), 67, message(web1, discover, giaddr("10.28.0.254")).ToBytes())
		if x := r.next(); x.MAC != web1 || x.Reply != "OFFER" {
			t.Errorf("a relay agent, %s: got %q of %s (%v %s)", when, x.Decision, x.MAC, x.Err, x.Why)
		}
	}
}
