package pools

import (
	"encoding/binary"
	"net/netip"
)

// EUI64 returns the address that a card with a MAC makes of a prefix of 64 bits, without
// privacy extensions (RFC 4291, appendix A).
func EUI64(prefix netip.Prefix, m MAC) netip.Addr {
	a := prefix.Masked().Addr().As16()
	copy(a[8:], []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
	return netip.AddrFrom16(a)
}

// SLAAC returns the prefix of which a node makes its IPv6 address, see [Subnet.SLAAC]. It is
// the zero Prefix for a node that has an address of its own, or no MAC.
func (c *Config) SLAAC(n *Node) netip.Prefix {
	if n.IP6.IsValid() || len(n.MACs) == 0 {
		return netip.Prefix{}
	}
	here := -1
	if n.IP.IsValid() {
		here = c.SubnetOf(n.IP)
	}
	var found netip.Prefix
	for i := range c.Subnets {
		s := &c.Subnets[i]
		switch {
		case !s.SLAAC:
		case here >= 0:
			if s.Network != "" && s.Network == c.Subnets[here].Network {
				return s.CIDR
			}
		case found.IsValid(): // there is no telling which one it is in
			return netip.Prefix{}
		default:
			found = s.CIDR
		}
	}
	return found
}

// Longer6 reports whether a range of IPv6 has more than n addresses.
func (r Range) Longer6(n uint64) bool {
	first, last := r.First.As16(), r.Last.As16()
	return [8]byte(first[:8]) != [8]byte(last[:8]) || binary.BigEndian.Uint64(last[8:])-binary.BigEndian.Uint64(first[8:]) >= n
}
