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
	typeIPv6       = 0x86dd
	protoTCP       = 6
	protoUDP       = 17
	flagSYN        = 0x02
)

// Parse takes a frame apart. ok is false for what is neither TCP nor UDP over IP, for IPv6
// with extension headers, for later fragments and for what is broken. Payload points into
// frame.
func Parse(frame []byte) (p Packet, ok bool) {
	if len(frame) < ethernetHeader {
		return p, false
	}
	var (
		src, dst netip.Addr
		protocol byte
		body     []byte // without the padding of short frames
	)
	switch ip := frame[ethernetHeader:]; binary.BigEndian.Uint16(frame[12:]) {
	case typeIPv4:
		src, dst, protocol, body = parseIPv4(ip)
	case typeIPv6:
		src, dst, protocol, body = parseIPv6(ip)
	}
	if len(body) < 8 {
		return p, false
	}
	p.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(body))
	p.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(body[2:]))
	switch protocol {
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

// parseIPv4 returns no body for a packet that is broken or a later fragment.
func parseIPv4(ip []byte) (src, dst netip.Addr, protocol byte, body []byte) {
	if len(ip) < 20 {
		return
	}
	head, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if total == 0 {
		total = len(ip) // more than 64 KB: the kernel left segmentation to the hardware
	}
	fragment := binary.BigEndian.Uint16(ip[6:])&0x1fff != 0
	if ip[0]>>4 != 4 || head < 20 || total < head || total > len(ip) || fragment {
		return
	}
	return netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20])), ip[9], ip[head:total]
}

// parseIPv6 returns no body for a broken packet.
func parseIPv6(ip []byte) (src, dst netip.Addr, protocol byte, body []byte) {
	const head = 40
	if len(ip) < head {
		return
	}
	total := head + int(binary.BigEndian.Uint16(ip[4:]))
	if total == head {
		total = len(ip) // as in parseIPv4
	}
	if ip[0]>>4 != 6 || total > len(ip) {
		return
	}
	return netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40])), ip[6], ip[head:total]
}
