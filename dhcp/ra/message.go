package ra

import (
	"encoding/binary"
	"net/netip"

	"drover/dhcp/packetio"
	"drover/pools"
)

const (
	ethernetHeader = 14
	ipv6Header     = 40

	etherTypeIPv6  = 0x86dd
	protocolICMPv6 = 58
	maxHops        = 255 // a packet with fewer left came through a router (RFC 4861, section 6.1)

	typeSolicitation  = 133
	typeAdvertisement = 134

	solicitationLength  = 8
	advertisementLength = 16
)

// station is the Ethernet and the link-local address of a host.
type station struct {
	mac  pools.MAC
	addr netip.Addr
}

// allNodes and allRouters are the multicast groups.
func allNodes() station {
	return station{pools.MAC{0x33, 0x33, 0, 0, 0, 1}, netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 15: 1})}
}

func allRouters() station {
	return station{pools.MAC{0x33, 0x33, 0, 0, 0, 2}, netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 15: 2})}
}

// linkLocal returns the link-local address that is made of a MAC (RFC 4291, appendix A).
func linkLocal(m pools.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// message is a solicitation or an advertisement as it was received.
type message struct {
	typ      byte
	from, to station
	valid    bool // as RFC 4861, section 6.1, has it

	router   bool // an advertisement that makes its sender a default router
	contents bool // an advertisement that configures anything
}

// parse reads a frame. It returns false for one that is neither a solicitation nor an
// advertisement.
func parse(f []byte) (m message, ok bool) {
	if len(f) < ethernetHeader+ipv6Header || binary.BigEndian.Uint16(f[12:]) != etherTypeIPv6 {
		return m, false
	}
	ip := f[ethernetHeader:]
	copy(m.to.mac[:], f)
	copy(m.from.mac[:], f[6:])
	m.from.addr, m.to.addr = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
	body := ip[ipv6Header:]
	size := int(binary.BigEndian.Uint16(ip[4:]))
	if ip[0]>>4 != 6 || ip[6] != protocolICMPv6 || size < 1 || size > len(body) {
		return m, false
	}
	body = body[:size] // what follows pads the frame
	m.typ = body[0]
	if m.typ != typeSolicitation && m.typ != typeAdvertisement {
		return m, false
	}
	m.valid = ip[7] == maxHops && m.from.mac[0]&1 == 0 && checksum(m.from.addr, m.to.addr, body) == 0 && m.parseBody(body)
	return m, true
}

// parseBody reads the ICMPv6 message, and reports whether it is valid.
func (m *message) parseBody(body []byte) bool {
	if m.typ == typeAdvertisement {
		return m.parseAdvertisement(body)
	}
	if len(body) < solicitationLength || body[1] != 0 || m.from.addr.IsMulticast() || m.from.addr.IsLoopback() {
		return false
	}
	unspecified, named := m.from.addr.IsUnspecified(), false
	whole := eachOption(body[solicitationLength:], func(typ byte) { named = named || typ == optionSourceAddress })
	return whole && (!unspecified || !named)
}

func (m *message) parseAdvertisement(body []byte) bool {
	if len(body) < advertisementLength || body[1] != 0 || !m.from.addr.IsLinkLocalUnicast() {
		return false
	}
	m.router = binary.BigEndian.Uint16(body[6:]) != 0
	m.contents = m.router || body[5]&(flagManaged|flagOther) != 0
	return eachOption(body[advertisementLength:], func(typ byte) { m.contents = m.contents || typ != optionSourceAddress })
}

// eachOption calls f with the type of each option. It returns false when one has no
// length or is cut off.
func eachOption(b []byte, f func(typ byte)) bool {
	for len(b) > 0 {
		if len(b) < 2 || b[1] == 0 || len(b) < int(b[1])*8 {
			return false
		}
		f(b[0])
		b = b[int(b[1])*8:]
	}
	return true
}

// frame wraps an ICMPv6 message, whose checksum it sets, into IPv6 and Ethernet.
func frame(from, to station, body []byte) []byte {
	f := make([]byte, ethernetHeader+ipv6Header, ethernetHeader+ipv6Header+len(body))
	copy(f, to.mac[:])
	copy(f[6:], from.mac[:])
	binary.BigEndian.PutUint16(f[12:], etherTypeIPv6)
	ip := f[ethernetHeader:]
	ip[0], ip[6], ip[7] = 6<<4, protocolICMPv6, maxHops
	binary.BigEndian.PutUint16(ip[4:], uint16(len(body)))
	src, dst := from.addr.As16(), to.addr.As16()
	copy(ip[8:], src[:])
	copy(ip[24:], dst[:])
	binary.BigEndian.PutUint16(body[2:], checksum(from.addr, to.addr, body))
	return append(f, body...)
}

// solicitation returns the frame by which from asks for routers.
func solicitation(from station) []byte {
	body := make([]byte, solicitationLength, 16)
	body[0] = typeSolicitation
	return frame(from, allRouters(), appendSourceAddress(body, from.mac))
}

// checksum is that of ICMPv6 (RFC 4443, section 2.3). Over a message that has its
// checksum it is zero.
func checksum(src, dst netip.Addr, body []byte) uint16 {
	from, to := src.As16(), dst.As16()
	sum := packetio.Checksum(uint32(len(body))+protocolICMPv6, from[:])
	sum = packetio.Checksum(uint32(sum), to[:])
	return ^packetio.Checksum(uint32(sum), body)
}
