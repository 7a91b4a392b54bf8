package dhcp6d

import (
	"encoding/binary"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"golang.org/x/net/bpf"

	"drover/dhcp/dhcp6"
	"drover/dhcp/packetio"
	"drover/dhcp/shed"
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
	intact   bool // its checksum is right
}

// The result of a filter is how many bytes of the packet the socket gets.
const (
	all  = 1 << 20
	none = 0
)

// filter lets a socket receive UDP packets over IPv6 to port 547. Clients and relay agents
// send no extension headers. The kernel also gives the socket the frames of VLANs on the
// interface, which have the index of another one. Of the SOLICITs it lets pass a random
// share, in parts of shed.All.
func filter(index, passed uint32) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: index, SkipTrue: 1},
		bpf.RetConstant{Val: none},
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherTypeIPv6, SkipTrue: 1},
		bpf.RetConstant{Val: none},
		bpf.LoadAbsolute{Off: ethernetHeader + 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolUDP, SkipTrue: 1},
		bpf.RetConstant{Val: none},
		bpf.LoadAbsolute{Off: ethernetHeader + ipHeader + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: dhcp6.ServerPort, SkipTrue: 1},
		bpf.RetConstant{Val: none},
	}
	if passed != shed.All {
		p = append(p, shedSolicits(passed)...)
	}
	return append(p, bpf.RetConstant{Val: all})
}

const (
	// relayOptions is how many options of a relay agent's message the filter reads to find
	// the client's. Agents put one or two before it.
	relayOptions = 4

	relayHeader = 34 // type, hop count, link address, peer address
)

// shedSolicits drops a random share of the SOLICITs. Those that relay agents forward count
// as well; messages that two agents forwarded all pass. A load behind the end of a packet
// drops it: only broken messages have one.
func shedSolicits(passed uint32) (p []bpf.Instruction) {
	const (
		perOption = 6 // instructions
		found     = 4 + relayOptions*perOption + 1
		random    = found + 2
		end       = random + shed.RandomLength
	)
	to := func(target int) uint8 { return uint8(target - len(p) - 1) } // from the next instruction
	emit := func(i bpf.Instruction) { p = append(p, i) }
	load := func(off uint32, size int) { emit(bpf.LoadIndirect{Off: frameHeaders + off, Size: size}) }

	emit(bpf.LoadAbsolute{Off: frameHeaders, Size: 1})
	emit(bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(dhcpv6.MessageTypeSolicit), SkipTrue: to(random)})
	emit(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(dhcpv6.MessageTypeRelayForward), SkipTrue: to(end)})
	emit(bpf.LoadConstant{Dst: bpf.RegX, Val: relayHeader})
	for range relayOptions { // X: where the option begins
		load(0, 2)
		emit(bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(dhcpv6.OptionRelayMsg), SkipTrue: to(found)})
		load(2, 2)
		emit(bpf.ALUOpX{Op: bpf.ALUOpAdd})
		emit(bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: 4})
		emit(bpf.TAX{})
	}
	emit(bpf.Jump{Skip: uint32(to(end))})
	load(4, 1)
	emit(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(dhcpv6.MessageTypeSolicit), SkipTrue: to(end)})
	drop := shed.Random(passed)
	return append(p, drop[:]...)
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
	// The pseudo header: both addresses, the protocol and the length. A sum of zero would mean that
	// there is none, which UDP over IPv6 forbids (RFC 8200, section 8.1).
	sum := packetio.Checksum(protocolUDP+uint32(n), ip[8:ipHeader])
	f.intact = binary.BigEndian.Uint16(udp[6:]) != 0 && packetio.Checksum(uint32(sum), udp[:n]) == 0xffff
	return f, true
}
