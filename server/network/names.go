package network

import (
	"net"
	"net/netip"
	"os"

	"drover/internal/ifaddr"
)

// Names returns the names of this host under which clients reach a listener at an address of the
// config: those of all its interfaces if it listens at all addresses. Link-local ones are left
// out: no URL has them.
func Names(listener string) (all []string) {
	host, _, err := net.SplitHostPort(listener)
	if a, bad := netip.ParseAddr(host); err != nil || host != "" && (bad != nil || !a.IsUnspecified()) {
		return nil
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		all = append(all, name)
	}
	addrs, _ := net.InterfaceAddrs() // none: the config has names as well
	for _, p := range ifaddr.Prefixes(addrs) {
		if a := p.Addr(); a.IsGlobalUnicast() {
			all = append(all, a.String())
		}
	}
	return all
}
