package configfile

import (
	"io/fs"
	"net"
	"net/netip"
	"slices"

	"drover/cmd/drover/cli/routes"
	"drover/internal/ifaddr"
)

// card is a network card of this host with an IPv4 address.
type card struct {
	name    string
	network netip.Prefix // its address, with the length of the network
}

// networkCards returns the cards that are up and have a network. Those without the host's
// default route are first: machines have a network of their own more often than not.
func networkCards(proc fs.FS) (out []card) {
	all, _ := net.Interfaces() // none: the operator names one
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, _ := i.Addrs()
		for _, p := range ifaddr.Prefixes(addrs) {
			if p.Addr().Is4() && p.Bits() <= 30 {
				out = append(out, card{i.Name, p})
				break
			}
		}
	}
	gateways := defaultRoutes(proc)
	slices.SortStableFunc(out, func(a, b card) int {
		switch x, y := gateways[a.name].IsValid(), gateways[b.name].IsValid(); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	return out
}

// defaultRoutes returns the gateways of the host's default routes by interface.
func defaultRoutes(proc fs.FS) map[string]netip.Addr {
	text, _ := fs.ReadFile(proc, "net/route") // none: no proposal
	gateways := map[string]netip.Addr{}
	for _, r := range routes.Parse(string(text)) {
		if r.To.Bits() == 0 {
			gateways[r.Link] = r.Gateway
		}
	}
	return gateways
}

// gatewayOf returns the router to propose for a network: the host's own, if it is in it.
func gatewayOf(proc fs.FS, name string, network netip.Prefix) string {
	if a := defaultRoutes(proc)[name]; a.IsValid() && !a.IsUnspecified() && network.Contains(a) {
		return a.String()
	}
	return ""
}
