package dhcp6d_test

import (
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/mdlayher/packet"

	"drover/dhcp"
	"drover/dhcp/packetio"
	"drover/e2e/fixture"
	"drover/pools"
)

// solicitFrame returns a SOLICIT of a client as it is on the wire.
func solicitFrame(t *testing.T, mac pools.MAC) []byte {
	t.Helper()
	solicit, err := dhcpv6.NewSolicit(mac[:])
	if err != nil {
		t.Fatal(err)
	}
	message := solicit.ToBytes()
	f := append([]byte{0x33, 0x33, 0, 1, 0, 2}, mac[:]...)
	f = append(f, 0x86, 0xdd, 0x60, 0, 0, 0)
	f = binary.BigEndian.AppendUint16(f, uint16(8+len(message)))
	f = append(f, 17, 1, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0]^2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5])
	f = append(f, net.ParseIP("ff02::1:2")...)
	f = binary.BigEndian.AppendUint16(append(f, 2, 34, 2, 35), uint16(8+len(message)))
	f = append(append(f, 0, 0), message...)
	sum := packetio.Checksum(17+uint32(8+len(message)), f[22:54])
	binary.BigEndian.PutUint16(f[60:], ^packetio.Checksum(uint32(sum), f[54:]))
	return f
}

// TestChecksum: a packet whose UDP checksum is wrong or zero gets silence (RFC 8200, section 8.1).
// One of this host, whose checksum a card would compute, is answered (TestReportFirst), and one with a
// priority tag.
func TestChecksum(t *testing.T) {
	r := newRack(t, "sum")
	r.bridge()
	r.serve(1)
	port := r.host("port1", m1)
	var conn *packet.Conn
	port.In(t, func() error {
		ifi, err := net.InterfaceByName("cli")
		if err == nil {
			conn, err = packet.Listen(ifi, packet.Raw, 0x86dd, nil)
		}
		return err
	})
	defer conn.Close()
	send := func(mac byte, change func([]byte) []byte) {
		f := solicitFrame(t, pools.MAC{2, 0, 0, 0, 0x77, mac})
		if change != nil {
			f = change(f)
		}
		if _, err := conn.WriteTo(f, &packet.Addr{HardwareAddr: net.HardwareAddr(f[:6])}); err != nil {
			t.Fatal(err)
		}
	}
	answered := func(mac byte) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(r.seen, func(x dhcp.Exchange) bool { return x.MAC == pools.MAC{2, 0, 0, 0, 0x77, mac} && x.Reply == "ADVERTISE" })
	}
	fixture.Eventually(t, "an answer to a right checksum", func() bool {
		send(1, nil)
		return answered(1)
	})
	send(2, func(f []byte) []byte { f[60] ^= 0x55; return f })
	send(3, func(f []byte) []byte { f[60], f[61] = 0, 0; return f })
	send(4, func(f []byte) []byte { f[len(f)-1] ^= 1; return f })
	fixture.Eventually(t, "an answer to a priority tag", func() bool {
		send(5, func(f []byte) []byte { return slices.Concat(f[:12], []byte{0x81, 0, 0x60, 0}, f[12:]) })
		return answered(5)
	})
	for _, mac := range []byte{2, 3, 4} {
		if answered(mac) {
			t.Errorf("packet %d is answered", mac)
		}
	}
}
