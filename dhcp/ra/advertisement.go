package ra

import (
	"encoding/binary"
	"math"
	"net/netip"
	"time"
)

// Advertisement is the content of a Router Advertisement (RFC 4861, section 4.2). The
// zero value configures nothing.
type Advertisement struct {
	Managed  bool          // M: hosts get addresses by DHCPv6
	Other    bool          // O: hosts get other settings by DHCPv6
	Lifetime time.Duration // how long the server is a default router, up to 65535 s; 0: it is none
	Prefixes []Prefix      // the first 38 are sent; more do not fit into a packet
}

// Prefix is a Prefix Information option (RFC 4861, section 4.6.2).
type Prefix struct {
	Prefix     netip.Prefix
	OnLink     bool          // L: hosts reach it without a router
	Autonomous bool          // A: hosts make addresses of it (RFC 4862)
	Valid      time.Duration // in whole seconds
	Preferred  time.Duration // not longer than Valid
}

// Empty reports whether a configures nothing.
func (a Advertisement) Empty() bool {
	return !a.Managed && !a.Other && a.Lifetime == 0 && len(a.Prefixes) == 0
}

// maxPrefixes fit into a packet of 1280 bytes beside the other option.
const maxPrefixes = 38

const (
	flagManaged    = 0x80
	flagOther      = 0x40
	flagOnLink     = 0x80
	flagAutonomous = 0x40

	optionSourceAddress = 1 // Source Link-Layer Address
	optionPrefix        = 3
)

// body returns the ICMPv6 message without its checksum. Fields of zero leave the hosts'
// own values unchanged. The link-layer address is that of the router; it is of no use
// to a host that has no route to it.
func (a Advertisement) body(mac [6]byte) []byte {
	b := make([]byte, 16, 24+32*min(len(a.Prefixes), maxPrefixes))
	b[0] = typeAdvertisement
	if a.Managed {
		b[5] |= flagManaged
	}
	if a.Other {
		b[5] |= flagOther
	}
	binary.BigEndian.PutUint16(b[6:], uint16(seconds(a.Lifetime, math.MaxUint16)))
	if a.Lifetime > 0 {
		b = appendSourceAddress(b, mac)
	}
	for _, p := range a.Prefixes[:min(len(a.Prefixes), maxPrefixes)] {
		b = p.append(b)
	}
	return b
}

// append appends the option.
func (p Prefix) append(b []byte) []byte {
	var flags byte
	if p.OnLink {
		flags |= flagOnLink
	}
	if p.Autonomous {
		flags |= flagAutonomous
	}
	b = append(b, optionPrefix, 4, byte(p.Prefix.Bits()), flags)
	b = binary.BigEndian.AppendUint32(b, seconds(p.Valid, math.MaxUint32))
	b = binary.BigEndian.AppendUint32(b, seconds(p.Preferred, math.MaxUint32))
	b = append(b, 0, 0, 0, 0)
	addr := p.Prefix.Masked().Addr().As16()
	return append(b, addr[:]...)
}

// appendSourceAddress appends the option with the sender's Ethernet address.
func appendSourceAddress(b []byte, mac [6]byte) []byte {
	return append(append(b, optionSourceAddress, 1), mac[:]...)
}

// seconds returns d in seconds, from 0 to most.
func seconds(d time.Duration, most int64) uint32 {
	return uint32(min(max(int64(d/time.Second), 0), most))
}
