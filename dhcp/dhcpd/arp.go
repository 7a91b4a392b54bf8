package dhcpd

import (
	"encoding/binary"
	"net"
	"net/netip"

	"drover/pools"
)

// broadcastMAC is the Ethernet address of all hosts.
func broadcastMAC() net.HardwareAddr { return net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }

const (
	etherTypeARP = 0x0806
	arpLength    = ethernetHeader + 28
)

// arpProbe is the frame that asks for the host of an address (RFC 5227, section
// 2.1.1). The sender's address is zero, so that no ARP table changes.
func arpProbe(from net.HardwareAddr, a netip.Addr) []byte {
	f := make([]byte, arpLength)
	copy(f, broadcastMAC())
	copy(f[6:], from)
	binary.BigEndian.PutUint16(f[12:], etherTypeARP)
	arp := f[ethernetHeader:]
	copy(arp, []byte{0, 1, 8, 0, 6, 4, 0, 1}) // Ethernet, IPv4, their lengths, request
	copy(arp[8:], from)
	ip := a.As4()
	copy(arp[24:], ip[:])
	return f
}

// arpSender returns the address that the sender of an ARP frame, request or
// reply, claims to have.
func arpSender(f []byte) (mac pools.MAC, a netip.Addr, ok bool) {
	if len(f) < arpLength || binary.BigEndian.Uint16(f[12:]) != etherTypeARP {
		return mac, a, false
	}
	arp := f[ethernetHeader:]
	if [6]byte(arp) != [6]byte{0, 1, 8, 0, 6, 4} {
		return mac, a, false
	}
	copy(mac[:], arp[8:])
	a = netip.AddrFrom4([4]byte(arp[14:]))
	return mac, a, !a.IsUnspecified()
}
