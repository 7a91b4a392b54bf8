package server

import (
	"net"
	"net/netip"
	"slices"
)

// networksOf returns the IPv4 networks of the named interfaces of this host, or of all
// its interfaces if no name is given.
func networksOf(names []string) (networks []netip.Prefix) {
	all, _ := net.Interfaces() // without any, no network is known
	for _, i := range all {
		if len(names) > 0 && !slices.Contains(names, i.Name) {
			continue
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				networks = append(networks, p.Masked())
			}
		}
	}
	return networks
}
