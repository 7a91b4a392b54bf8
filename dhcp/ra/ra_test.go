package ra_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv6"

	"drover/dhcp/ra"
	"drover/pools"
)

// host is a host of the tests.
type host struct {
	mac  pools.MAC
	addr netip.Addr
}

var (
	server = host{pools.MAC{0x02, 0, 0, 0, 0, 0x02}, netip.MustParseAddr("fe80::ff:fe00:2")}
	ipxe   = host{pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}, netip.MustParseAddr("fe80::5054:ff:fe77:101")}
	router = host{pools.MAC{0x02, 0, 0, 0, 0, 0x01}, netip.MustParseAddr("fe80::1")}

	everyRouter = host{pools.MAC{0x33, 0x33, 0, 0, 0, 2}, netip.MustParseAddr("ff02::2")}
	everyNode   = host{pools.MAC{0x33, 0x33, 0, 0, 0, 1}, netip.MustParseAddr("ff02::1")}
)

var empty ra.Advertisement

// at is from's MAC with another address.
func (h host) at(addr string) host { return host{h.mac, netip.MustParseAddr(addr)} }

// sourceAddress is the option with a link-layer address.
func sourceAddress(m pools.MAC) []byte { return append([]byte{1, 1}, m[:]...) }

// packet makes a frame with an ICMPv6 message, whose checksum another implementation
// computes.
func packet(t testing.TB, from, to host, typ ipv6.ICMPType, body ...[]byte) []byte {
	t.Helper()
	m := icmp.Message{Type: typ, Body: &icmp.RawBody{Data: slices.Concat(body...)}}
	b, err := m.Marshal(icmp.IPv6PseudoHeader(net.IP(from.addr.AsSlice()), net.IP(to.addr.AsSlice())))
	if err != nil {
		t.Fatal(err)
	}
	f := slices.Concat(to.mac[:], from.mac[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0}, binary.BigEndian.AppendUint16(nil, uint16(len(b))),
		[]byte{58, 255}, from.addr.AsSlice(), to.addr.AsSlice())
	return append(f, b...)
}

// solicit makes a solicitation as iPXE sends it.
func solicit(t testing.TB, from host) []byte {
	t.Helper()
	return packet(t, from, everyRouter, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4), sourceAddress(from.mac))
}

// advertise makes an advertisement with a router lifetime in seconds.
func advertise(t testing.TB, from host, flags byte, lifetime uint16, options ...byte) []byte {
	t.Helper()
	head := binary.BigEndian.AppendUint16([]byte{64, flags}, lifetime)
	return packet(t, from, everyNode, ipv6.ICMPTypeRouterAdvertisement, head, make([]byte, 8), options)
}

// answer is an advertisement of the server.
func answer(t testing.TB, to host, body ...byte) []byte {
	t.Helper()
	return packet(t, server, to, ipv6.ICMPTypeRouterAdvertisement, body)
}
