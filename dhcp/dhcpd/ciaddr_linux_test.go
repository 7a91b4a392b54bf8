package dhcpd_test

import (
	"net"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/dhcpd"
	"drover/e2e/dhcptest"
)

// answers returns a function that waits for the next DHCP answer on the clients' wire, in
// a frame to any host.
func (r *rack) answers() func() (to string, _ *dhcpv4.DHCPv4) {
	r.t.Helper()
	conn := r.frames(0x0800)
	return func() (string, *dhcpv4.DHCPv4) {
		r.t.Helper()
		conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		for b := make([]byte, 2000); ; {
			n, _, err := conn.ReadFrom(b)
			if err != nil {
				r.t.Fatal(err)
			}
			m, _, src, dst, ok := dhcpd.ParseFrame(b[:n])
			if !ok || src.Port() != 67 {
				continue
			}
			p, err := dhcpv4.FromBytes(m)
			if err != nil {
				r.t.Fatal(err)
			}
			return net.HardwareAddr(b[:6]).String() + " " + dst.String(), p
		}
	}
}

// TestROMThatFillsCiaddr (W5): the ROM has put the offered address into ciaddr, and does
// not answer ARP for it. The ACK comes in a frame.
func TestROMThatFillsCiaddr(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	r.serve(s)
	r.plugWith(web1, "10.28.0.200/16")
	next, send := r.answers(), r.card(web1)
	all, chooses := dhcpv4.WithBroadcast(true), dhcptest.ServerID(serverAddr)
	for _, tt := range []struct {
		name string
		mods []dhcpv4.Modifier
		want string
	}{
		{"with option 50", []dhcpv4.Modifier{chooses, requested("10.28.36.1")}, web1.String() + " 10.28.36.1:68"},
		{"with option 50 and the flag", []dhcpv4.Modifier{chooses, requested("10.28.36.1"), all}, "ff:ff:ff:ff:ff:ff 255.255.255.255:68"},
		{"alone", []dhcpv4.Modifier{chooses}, web1.String() + " 10.28.36.1:68"},
		{"alone with the flag", []dhcpv4.Modifier{chooses, all}, "ff:ff:ff:ff:ff:ff 255.255.255.255:68"},
		{"without the server", nil, web1.String() + " 10.28.36.1:68"},
	} {
		send(message(web1, request, append(tt.mods, rom, ciaddr("10.28.36.1"))...).ToBytes())
		to, p := next()
		if p.MessageType() != dhcpv4.MessageTypeAck || p.YourIPAddr.String() != "10.28.36.1" || to != tt.want {
			t.Errorf("%s: got %s to %s, want it to %s", tt.name, p.MessageType(), to, tt.want)
		}
	}
}
