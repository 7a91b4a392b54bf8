// Package ifaddr has the addresses of network interfaces as package net returns them, in the
// types of net/netip, and the set of addresses of a [Host]. It asks no system.
package ifaddr

import (
	"net"
	"net/netip"
)

// Prefixes returns the addresses of an interface or of a host, as [net.Interface.Addrs] and
// [net.InterfaceAddrs] return them, each with its network. They have no zone.
func Prefixes(addrs []net.Addr) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(addrs))
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p)
		}
	}
	return all
}
