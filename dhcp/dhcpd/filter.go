package dhcpd

import (
	"encoding/binary"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/net/bpf"

	"drover/dhcp"
	"drover/dhcp/shed"
	"drover/pools"
)

// maxFiltered is how many relay agents a filter lets pass. Programs are limited by
// net.core.optmem_max, which is 20 KiB on older kernels.
const maxFiltered = 128

// Offsets into a UDP packet, from its UDP header on.
const (
	udpPortAt   = 2
	udpLengthAt = 4
	giaddrAt    = udpHeader + 24
	chaddrAt    = udpHeader + 28
	optionsAt   = udpHeader + 240 // behind the magic cookie

	shortestUDP = udpHeader + 240 // the header of a DHCP message
	longestUDP  = udpHeader + dhcp.MaxRequest
)

// The result of a filter is how many bytes of the packet the socket gets.
const (
	all  = 1 << 20
	none = 0
)

// messageTypeOption is the code of the option with the type of a message.
const messageTypeOption = 53

// linkLayer is where a UDP socket's filter finds the Ethernet header
// (SKF_LL_OFF of linux/filter.h).
const linkLayer = 0xffe00000

// socketFilter lets a UDP socket receive the packets whose frame proves their sender:
// those that a client sent from its own card, and those of these relay agents. It also
// lets pass the packets that are no DHCP messages, which are counted. It costs a packet
// some ten nanoseconds, and a forged one costs no more. Of the DISCOVERs it lets pass a
// random share, in parts of shed.All.
func socketFilter(relays []pools.MAC, passed uint32) []bpf.Instruction {
	field := func(at uint32, size int) bpf.Instruction { return bpf.LoadAbsolute{Off: at, Size: size} }
	p := bySender(field, linkLayer, relays, all, none)
	if passed == shed.All {
		return p
	}
	// The message type is the first option by custom. Where it is not, the packet passes.
	random := shed.Random(passed)
	return slices.Concat([]bpf.Instruction{
		field(udpLengthAt, 2),
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: optionsAt + 3, SkipTrue: 7},
		field(optionsAt, 2),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: messageTypeOption<<8 | 1, SkipTrue: 5},
		field(optionsAt+2, 1),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(dhcpv4.MessageTypeDiscover), SkipTrue: shed.RandomLength},
	}, random[:], p)
}

// frameFilter lets a socket for Ethernet frames receive all packets to these UDP ports
// that socketFilter lets no UDP socket receive.
func frameFilter(relays []pools.MAC, port, other uint16) []bpf.Instruction {
	const ip = ethernetHeader
	field := func(at uint32, size int) bpf.Instruction { return bpf.LoadIndirect{Off: ip + at, Size: size} }
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: ip + 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolUDP, SkipFalse: 6},
		bpf.LoadAbsolute{Off: ip + 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipTrue: 4}, // a fragment
		bpf.LoadMemShift{Off: ip},                                   // X: the length of the IP header
		field(udpPortAt, 2),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(port), SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(other), SkipTrue: 1},
		bpf.RetConstant{Val: none},
	}, bySender(field, 0, relays, none, all)...)
}

// bySender returns the common part of the filters. field loads a field of the UDP packet
// into register A, and ethernet is the offset of the Ethernet header. The program
// returns proven for a packet whose frame proves the sender, and else other.
func bySender(field func(at uint32, size int) bpf.Instruction, ethernet uint32, relays []pools.MAC, proven, other uint32) []bpf.Instruction {
	source, sourceEnd := bpf.LoadAbsolute{Off: ethernet + 6, Size: 4}, bpf.LoadAbsolute{Off: ethernet + 10, Size: 2}
	p := []bpf.Instruction{
		field(udpLengthAt, 2),
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: shortestUDP, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: longestUDP, SkipTrue: 1},
		bpf.RetConstant{Val: proven},
		field(chaddrAt, 4), bpf.StoreScratch{Src: bpf.RegA, N: 0},
		field(chaddrAt+4, 2), bpf.StoreScratch{Src: bpf.RegA, N: 1},
		field(giaddrAt, 4),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 8},
		// Not relayed: the source of the frame is chaddr.
		source, bpf.LoadScratch{Dst: bpf.RegX, N: 0}, bpf.JumpIfX{Cond: bpf.JumpEqual, SkipFalse: 4},
		sourceEnd, bpf.LoadScratch{Dst: bpf.RegX, N: 1}, bpf.JumpIfX{Cond: bpf.JumpEqual, SkipFalse: 1},
		bpf.RetConstant{Val: proven},
		bpf.RetConstant{Val: other},
		// Relayed: it is one of these relay agents.
		source, bpf.StoreScratch{Src: bpf.RegA, N: 0},
		sourceEnd, bpf.StoreScratch{Src: bpf.RegA, N: 1},
	}
	for _, mac := range relays[:min(len(relays), maxFiltered)] {
		p = append(p,
			bpf.LoadScratch{Dst: bpf.RegA, N: 0},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(mac[:]), SkipFalse: 3},
			bpf.LoadScratch{Dst: bpf.RegA, N: 1},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(binary.BigEndian.Uint16(mac[4:])), SkipFalse: 1},
			bpf.RetConstant{Val: proven})
	}
	return append(p, bpf.RetConstant{Val: other})
}
