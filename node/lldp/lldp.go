// Package lldp hears the switches that the network cards are connected to: they announce
// themselves by LLDP (IEEE 802.1AB). [Listen] collects the announcements, [Parse] reads one.
//
// It announces nothing, and does not change network cards.
package lldp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"

	"drover/pools"
)

// Types of TLVs (IEEE 802.1AB, clause 8.5).
const (
	typeEnd             = 0
	typeChassis         = 1
	typePort            = 2
	typeTTL             = 3
	typePortDescription = 4
	typeSystemName      = 5
)

// Subtypes of chassis and port IDs that are not text (tables 8-2 and 8-3). The others are.
const (
	chassisMAC     = 4
	chassisAddress = 5
	portMAC        = 3
	portAddress    = 4
)

// maxID is the size of a chassis or port ID with its subtype, in bytes.
const maxID = 256

// Parse reads an LLDPDU: what follows the Ethernet header. It returns false for one that is
// damaged, and for the last one of a switch that shuts down. The texts are as received.
func Parse(pdu []byte) (n pools.Neighbour, ok bool) {
	for i := 0; ; i++ {
		kind, value, rest, whole := next(pdu)
		if !whole {
			return n, false
		}
		pdu = rest
		mandatory := []int{typeChassis, typePort, typeTTL}
		if i < len(mandatory) && kind != mandatory[i] || i >= len(mandatory) && kind != typeEnd && kind <= typeTTL {
			return n, false // these three come first, and once
		}
		switch kind {
		case typeEnd:
			return n, true
		case typeChassis, typePort:
			if len(value) < 2 || len(value) > maxID {
				return n, false
			}
			if kind == typeChassis {
				n.Chassis = identifier(value, chassisMAC, chassisAddress)
			} else {
				n.Port = identifier(value, portMAC, portAddress)
			}
		case typeTTL:
			if len(value) < 2 || binary.BigEndian.Uint16(value) == 0 {
				return n, false
			}
		case typePortDescription:
			n.Description = text(value)
		case typeSystemName:
			n.System = text(value)
		}
	}
}

// next cuts a TLV off: 7 bits of type, 9 bits of length, and the value. An LLDPDU may end
// with its frame in place of an end TLV.
func next(pdu []byte) (kind int, value, rest []byte, whole bool) {
	if len(pdu) == 0 {
		return typeEnd, nil, nil, true
	}
	if len(pdu) < 2 {
		return 0, nil, nil, false
	}
	head := binary.BigEndian.Uint16(pdu)
	kind, size := int(head>>9), int(head&0x1ff)
	if pdu = pdu[2:]; len(pdu) < size {
		return 0, nil, nil, false
	}
	return kind, pdu[:size], pdu[size:], true
}

// identifier returns a chassis or port ID as text. The subtypes of MACs and of network
// addresses differ between the two.
func identifier(value []byte, mac, address byte) string {
	subtype, id := value[0], value[1:]
	switch {
	case subtype == mac && len(id) == 6:
		return net.HardwareAddr(id).String()
	case subtype == address: // behind its family, by IANA: 1 is IPv4, 2 IPv6
		if a, ok := netip.AddrFromSlice(id[1:]); ok {
			return a.String()
		}
	}
	return text(id)
}

// text returns a text, which some switches end with a zero byte.
func text(value []byte) string { return strings.TrimRight(string(value), "\x00") }
