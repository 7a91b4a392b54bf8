package dhcpd_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"drover/dhcp/dhcpd"
)

func TestFrame(t *testing.T) {
	from, to := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	src, dst := netip.MustParseAddrPort("10.28.0.2:67"), netip.MustParseAddrPort("10.28.36.1:68")
	for _, message := range [][]byte{{}, []byte("odd"), bytes.Repeat([]byte{0xff}, 300)} {
		f := dhcpd.Frame(from, to, src, dst, message)
		if !bytes.Equal(f[:14], []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}) {
			t.Errorf("got Ethernet header % x", f[:14])
		}
		ip, udp := f[14:34], f[34:]
		if got := int(binary.BigEndian.Uint16(ip[2:])); got != len(f)-14 {
			t.Errorf("got IP length %d, want %d", got, len(f)-14)
		}
		if got := int(binary.BigEndian.Uint16(udp[4:])); got != 8+len(message) {
			t.Errorf("got UDP length %d, want %d", got, 8+len(message))
		}
		if !bytes.Equal(udp[:4], []byte{0, 67, 0, 68}) || !bytes.Equal(udp[8:], message) {
			t.Errorf("got UDP % x", udp)
		}
		// What a receiver does: the sum over all, checksum included, is all
		// ones.
		if got := sum(ip); got != 0xffff {
			t.Errorf("IP header sums to %#x", got)
		}
		pseudo := append(bytes.Clone(ip[12:20]), 0, 17, udp[4], udp[5])
		if got := sum(append(pseudo, udp...)); got != 0xffff {
			t.Errorf("UDP sums to %#x", got)
		}
	}
}

func sum(b []byte) uint32 {
	var s uint32
	for i, v := range b {
		s += uint32(v) << (8 * (1 - i%2))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return s
}
