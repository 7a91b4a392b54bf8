package resolve

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
)

// Spare reports whether the config has no use for an address: it is no node's own, in no
// pool's range, and no server's, see [Plan.Serves].
func (p *Plan) Spare(a netip.Addr) bool {
	if p.Serves(a) {
		return false
	}
	f := p.farm
	return f == nil || !f.Reserved(a) && !f.InRange(a)
}

// Serves reports whether the config names an address as that of a router, a relay agent
// or a server: for DNS, time, boot files or anything else that it tells machines of. Such
// a host needs no lease, so its address is not leased to another machine.
func (p *Plan) Serves(a netip.Addr) bool {
	if p.farm == nil {
		return a == p.Subnet.Router || slices.Contains(p.Subnet.DNS, a)
	}
	return p.farm.services[a] || p.farm.IsLocal(a)
}

// IsServer reports whether an address is one of the server that made the plan, see
// [Farm.IsLocal].
func (p *Plan) IsServer(a netip.Addr) bool { return p.farm != nil && p.farm.IsLocal(a) }

// Infrastructure returns what host an address is of, see [Farm.Infrastructure].
func (p *Plan) Infrastructure(a netip.Addr) string {
	if p.farm == nil {
		return ""
	}
	return p.farm.Infrastructure(a)
}

// Leasable reports whether a machine that has no lease of an address of a range can get one: it
// is no node's own, and no server's, see [Plan.Serves].
func (f *Farm) Leasable(a netip.Addr) bool {
	return !f.Reserved(a) && !f.services[a] && !f.IsLocal(a)
}

// LeasableIn returns the number of addresses of a range that are [Farm.Leasable], up to limit.
func (f *Farm) LeasableIn(r pools.Range, limit int) int {
	others := map[netip.Addr]bool{}
	add := func(a netip.Addr) {
		if r.Contains(a) {
			others[a] = true
		}
	}
	for a := range f.byIP {
		add(a)
	}
	for a := range f.retired.byIP {
		add(a)
	}
	for a := range f.services {
		add(a)
	}
	add(f.Address())
	for _, x := range f.addresses.bySubnet {
		add(x.Address)
	}
	for _, l := range slices.Concat(f.addresses.local, f.addresses.local6) {
		add(l.Prefix.Addr())
	}
	return max(0, r.Count(limit)-len(others))
}

// InRange reports whether a catch-all pool leases the address.
func (f *Farm) InRange(a netip.Addr) bool {
	return slices.ContainsFunc(f.catchalls, func(e *entry) bool {
		p := &f.Config.Pools[e.pool]
		return p.Range.Contains(a) || p.Range6.Contains(a)
	})
}

// maxSearch bounds the search for free addresses.
const maxSearch = 1 << 16

// FreeAddresses returns addresses of a network for new nodes, the lowest first, limit at
// most: those that no node, pool or server of the config has, and that taken returns false
// for. The first and the last address of a network are left out.
func (f *Farm) FreeAddresses(network netip.Prefix, limit int, taken func(netip.Addr) bool) []netip.Addr {
	free := []netip.Addr{}
	first := network.Masked().Addr().Next()
	for a, n := first, 0; network.Contains(a.Next()) && len(free) < limit && n < maxSearch; a, n = a.Next(), n+1 {
		if f.Leasable(a) && !f.InRange(a) && !taken(a) {
			free = append(free, a)
		}
	}
	return free
}

// indexServices collects the addresses of [Plan.Serves].
func (f *Farm) indexServices() {
	f.services = map[netip.Addr]bool{}
	add := func(all ...netip.Addr) {
		for _, a := range all {
			f.services[a] = true
		}
	}
	f.infrastructure = f.Config.Infrastructure()
	add(slices.Collect(maps.Keys(f.infrastructure))...)
	for _, t := range f.Config.Tags {
		add(optionAddrs(t.DHCPOptions)...)
		for _, r := range t.Loaders.Items {
			add(r.Server)
		}
	}
	for _, e := range f.entries {
		add(optionAddrs(e.DHCPOptions)...)
	}
	delete(f.services, netip.Addr{})
}

// Infrastructure returns what host an address is of, other than a machine: this server, or one of
// [pools.Config.Infrastructure]. It is empty for other addresses.
func (f *Farm) Infrastructure(a netip.Addr) string {
	if f.IsLocal(a) {
		return "this server"
	}
	return f.infrastructure[a]
}

// optionAddrs returns the addresses in the values of options, as the operator wrote them:
// those of servers, and the routers of routes.
func optionAddrs(options map[string]pools.Strings) (all []netip.Addr) {
	for _, values := range options {
		for _, value := range values {
			for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' || r == '=' }) {
				if a, err := netip.ParseAddr(word); err == nil {
					all = append(all, a)
				}
			}
		}
	}
	return all
}
