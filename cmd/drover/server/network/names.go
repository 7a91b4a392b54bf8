package network

import (
	"net"
	"net/netip"
	"os"
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
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			all = append(all, n.IP.String())
		}
	}
	return all
}
