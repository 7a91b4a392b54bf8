package netns

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Datagram returns an IPv4 packet with a UDP datagram. The checksum of UDP is left out,
// as RFC 768 allows.
func Datagram(from, to netip.AddrPort, ttl byte, payload []byte) []byte {
	const ipHeader, udpHeader = 20, 8
	b := make([]byte, ipHeader+udpHeader, ipHeader+udpHeader+len(payload))
	b[0], b[8], b[9] = 4<<4|ipHeader/4, ttl, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(cap(b)))
	copy(b[12:], from.Addr().AsSlice())
	copy(b[16:], to.Addr().AsSlice())
	var sum uint32
	for i := 0; i < ipHeader; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
	binary.BigEndian.PutUint16(b[20:], from.Port())
	binary.BigEndian.PutUint16(b[22:], to.Port())
	binary.BigEndian.PutUint16(b[24:], uint16(udpHeader+len(payload)))
	return append(b, payload...)
}
