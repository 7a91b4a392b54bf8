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

// TestChecksum: a packet with a wrong UDP checksum gets silence, whatever socket reads it. Without a
// checksum it counts (RFC 768). TestNoProbe has packets whose checksum the card would compute.
func TestChecksum(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	r.serve(s)
	r.reach(r.relay())
	conn := r.frames(0)
	everybody := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for _, relayed := range []bool{false, true} {
		frame := func(m pools.MAC) []byte {
			if relayed {
				return dhcpd.Frame(foreign[:], serverMAC[:], netip.MustParseAddrPort("10.28.0.254:67"), netip.AddrPortFrom(serverAddr, 67),
					message(m, discover, giaddr("10.28.0.254")).ToBytes())
			}
			return dhcpd.Frame(m[:], everybody, netip.MustParseAddrPort("0.0.0.0:68"), netip.MustParseAddrPort("255.255.255.255:67"), here(m, discover))
		}
		wrong, none := frame(stray), frame(web1)
		wrong[len(wrong)-1] ^= 1
		none[40], none[41] = 0, 0
		for _, f := range [][]byte{wrong, none} {
			if _, err := conn.WriteTo(f, &packet.Addr{HardwareAddr: f[:6]}); err != nil {
				t.Fatal(err)
			}
		}
		if x := r.next(); x.MAC != web1 || x.Reply != "OFFER" {
			t.Errorf("relayed %t: got %q of %s, want an OFFER to %s", relayed, x.Decision, x.MAC, web1)
		}
	}
}
