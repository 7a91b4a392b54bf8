package dhcp6d

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"

	"drover/dhcp/dhcp6"
	"drover/pools"
)

const (
	etherTypeIPv6  = 0x86dd
	protocolUDP    = 17
	ethernetHeader = 14
	ipHeader       = 40
	udpHeader      = 8
	frameHeaders   = ethernetHeader + ipHeader + udpHeader
)

// frame is a packet to port 547 as it was on the wire.
type frame struct {
	mac      pools.MAC // source
	src, dst netip.Addr
	port     uint16 // source
	message  []byte
}

// filter lets a socket receive UDP packets over IPv6 to port 547. Clients and relay agents
// send no extension headers. The kernel also gives the socket the frames of VLANs on the
// interface, which have the index of another one.
func filter(index uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: index, SkipFalse: 7},
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherTypeIPv6, SkipFalse: 5},
		bpf.LoadAbsolute{Off: ethernetHeader + 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolUDP, SkipFalse: 3},
		bpf.LoadAbsolute{Off: ethernetHeader + ipHeader + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: dhcp6.ServerPort, SkipFalse: 1},
		bpf.RetConstant{Val: 1 << 20},
		bpf.RetConstant{Val: 0},
	}
}

// parseFrame reads a frame that filter let pass. ok is false for one that is cut off, and
// for one that the card with the MAC own sent, or that is for another card.
func parseFrame(b []byte, own pools.MAC) (f frame, ok bool) {
	if len(b) < frameHeaders {
		return f, false
	}
	to, ip, udp := pools.MAC(b), b[ethernetHeader:], b[ethernetHeader+ipHeader:]
	f.mac = pools.MAC(b[6:])
	n := int(binary.BigEndian.Uint16(udp[4:]))
	switch {
	case f.mac == own, to != own && to[0]&1 == 0, n < udpHeader, n > len(udp):
		return f, false
	}
	f.src, f.dst = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
	f.port, f.message = binary.BigEndian.Uint16(udp), udp[udpHeader:n]
	return f, true
}
