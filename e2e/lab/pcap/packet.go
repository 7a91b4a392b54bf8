package pcap

import (
	"encoding/binary"
	"net/netip"
)

// Packet is a TCP segment or a UDP datagram.
type Packet struct {
	Src, Dst netip.AddrPort
	TCP      bool
	Seq      uint32 // TCP
	SYN      bool   // TCP
	Payload  []byte
}

// Numbers of the protocols, and offsets in their headers.
const (
	ethernetHeader = 14
	typeIPv4       = 0x0800
	protoTCP       = 6
	protoUDP       = 17
	flagSYN        = 0x02
)

// Parse takes a frame apart. ok is false for what is neither TCP nor UDP over
// IPv4, for later fragments and for what is broken. Payload points into frame.
func Parse(frame []byte) (p Packet, ok bool) {
	if len(frame) < ethernetHeader+20 || binary.BigEndian.Uint16(frame[12:]) != typeIPv4 {
		return p, false
	}
	ip := frame[ethernetHeader:]
	head, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if total == 0 {
		total = len(ip) // more than 64 KB: the kernel left segmentation to the hardware
	}
	fragment := binary.BigEndian.Uint16(ip[6:])&0x1fff != 0
	if ip[0]>>4 != 4 || head < 20 || total < head || total > len(ip) || fragment {
		return p, false
	}
	src, dst := netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
	body := ip[head:total] // without the padding of short frames
	if len(body) < 8 {
		return p, false
	}
	p.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(body))
	p.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(body[2:]))
	switch ip[9] {
	case protoUDP:
		p.Payload = body[8:]
		return p, true
	case protoTCP:
		if len(body) < 20 {
			return p, false
		}
		off := int(body[12]>>4) * 4
		if off < 20 || off > len(body) {
			return p, false
		}
		p.TCP, p.Seq, p.SYN, p.Payload = true, binary.BigEndian.Uint32(body[4:]), body[13]&flagSYN != 0, body[off:]
		return p, true
	}
	return p, false
}
