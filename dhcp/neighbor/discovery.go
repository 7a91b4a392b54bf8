package neighbor

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"

	"drover/dhcp/packetio"
	"drover/pools"
)

// The messages of neighbour discovery (RFC 4861, sections 4.3 and 4.4).
const (
	etherTypeIPv6      = 0x86dd
	ipHeader           = 40
	protocolICMPv6     = 58
	maxHops            = 255 // a packet with fewer left came through a router
	typeSolicitation   = 135
	typeAdvertisement  = 136
	messageLength      = 24 // with the target, without options
	optionSourceMAC    = 1
	solicitationLength = ethernetHeader + ipHeader + messageLength + 8
)

// linkLocal is the address that belongs to a MAC (RFC 4291, appendix A). Answers to it are read from
// frames: the interface need not have it.
func linkLocal(m pools.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// solicitation is the frame that asks the host to for an address, by unicast. It names the MAC to
// answer to.
func solicitation(from, to pools.MAC, a netip.Addr) []byte {
	f := make([]byte, ethernetHeader, solicitationLength)
	copy(f, to[:])
	copy(f[6:], from[:])
	binary.BigEndian.PutUint16(f[12:], etherTypeIPv6)
	f = append(f, 0x60, 0, 0, 0, 0, messageLength+8, protocolICMPv6, maxHops)
	f = append(append(f, linkLocal(from).AsSlice()...), a.AsSlice()...)
	f = append(append(f, typeSolicitation, 0, 0, 0, 0, 0, 0, 0), a.AsSlice()...)
	f = append(append(f, optionSourceMAC, 1), from[:]...)
	binary.BigEndian.PutUint16(f[ethernetHeader+ipHeader+2:], ^messageSum(f[ethernetHeader:]))
	return f
}

// messageSum adds up an ICMPv6 message and its pseudo header; 0xffff means that its checksum is right.
func messageSum(ip []byte) uint16 {
	body := ip[ipHeader:]
	return packetio.Checksum(uint32(packetio.Checksum(protocolICMPv6+uint32(len(body)), ip[8:ipHeader])), body)
}

// advertiser returns the host that the sender of a neighbour advertisement claims to be. The MAC is
// that of the frame: a host may leave out the option with it.
func advertiser(f []byte) (h Host, ok bool) {
	if len(f) < ethernetHeader+ipHeader+messageLength || binary.BigEndian.Uint16(f[12:]) != etherTypeIPv6 {
		return h, false
	}
	ip := f[ethernetHeader:]
	size := int(binary.BigEndian.Uint16(ip[4:]))
	if ip[6] != protocolICMPv6 || ip[7] != maxHops || size < messageLength || size > len(ip)-ipHeader {
		return h, false
	}
	ip = ip[:ipHeader+size] // what follows pads the frame
	message := ip[ipHeader:]
	if message[0] != typeAdvertisement || message[1] != 0 || messageSum(ip) != 0xffff {
		return h, false
	}
	h = Host{netip.AddrFrom16([16]byte(message[8:])), pools.MAC(f[6:])}
	return h, !h.Addr.IsMulticast()
}

// advertisements is the filter for neighbour advertisements that came in by the interface. The kernel
// also gives a socket the frames of VLANs on it, which have the index of another one.
func advertisements(index int) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(index), SkipTrue: 5},
		bpf.LoadAbsolute{Off: ethernetHeader + 6, Size: 2}, // protocol, hops
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocolICMPv6<<8 | maxHops, SkipTrue: 3},
		bpf.LoadAbsolute{Off: ethernetHeader + ipHeader, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: typeAdvertisement, SkipTrue: 1},
		bpf.RetConstant{Val: maxFrame},
		bpf.RetConstant{Val: 0},
	}
}
