package externalhost

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Allocate returns the first network of that prefix length in an IPv4 range that does not
// overlap any of those in use. It returns false if there is none.
func Allocate(within netip.Prefix, size int, used []netip.Prefix) (netip.Prefix, bool) {
	if !within.IsValid() || !within.Addr().Is4() || size < within.Bits() || size > 32 {
		return netip.Prefix{}, false
	}
	last := lastOf(within)
	for next := number(within.Masked().Addr()); next <= last; {
		p := netip.PrefixFrom(address(next), size)
		i := slices.IndexFunc(used, p.Overlaps)
		if i < 0 {
			return p, true
		}
		// The next of this size after the one in use, which may be larger.
		next = max(lastOf(p), lastOf(used[i])) + 1
	}
	return netip.Prefix{}, false
}

// number and address convert addresses of IPv4. 64 bits have room for the one behind the
// last.
func number(a netip.Addr) uint64 {
	b := a.As4()
	return uint64(binary.BigEndian.Uint32(b[:]))
}

func address(n uint64) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(n))
	return netip.AddrFrom4(b)
}

// lastOf returns the last address of a network.
func lastOf(p netip.Prefix) uint64 { return number(p.Masked().Addr()) + 1<<(32-p.Bits()) - 1 }
