package neighbor

import (
	"encoding/binary"
	"net/netip"

	"drover/pools"
)

const (
	ethernetHeader = 14
	etherTypeARP   = 0x0806
	arpLength      = ethernetHeader + 28
)

// broadcast is the Ethernet address of all hosts.
func broadcast() pools.MAC { return pools.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }

// arpRequest is the frame that asks the host to for an address. sender is the asking host's own
// address; the zero Addr makes a probe (RFC 5227, section 2.1.1), which changes no ARP table.
func arpRequest(from pools.MAC, sender netip.Addr, to pools.MAC, a netip.Addr) []byte {
	f := make([]byte, arpLength)
	copy(f, to[:])
	copy(f[6:], from[:])
	binary.BigEndian.PutUint16(f[12:], etherTypeARP)
	arp := f[ethernetHeader:]
	copy(arp, []byte{0, 1, 8, 0, 6, 4, 0, 1}) // Ethernet, IPv4, their lengths, request
	copy(arp[8:], from[:])
	if sender.IsValid() {
		copy(arp[14:], sender.AsSlice())
	}
	copy(arp[24:], a.AsSlice())
	return f
}

// arpSender returns the host that the sender of an ARP frame, request or reply, claims to be.
func arpSender(f []byte) (h Host, ok bool) {
	if len(f) < arpLength || binary.BigEndian.Uint16(f[12:]) != etherTypeARP {
		return h, false
	}
	arp := f[ethernetHeader:]
	if [6]byte(arp) != [6]byte{0, 1, 8, 0, 6, 4} {
		return h, false
	}
	h = Host{netip.AddrFrom4([4]byte(arp[14:])), pools.MAC(arp[8:])}
	return h, !h.Addr.IsUnspecified()
}
