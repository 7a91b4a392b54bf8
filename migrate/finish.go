package migrate

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/option"
)

// maxLease is the longest lease time with an end that drover gives.
const maxLease = 10 * 365 * 24 * time.Hour

// Lease returns a lease time that drover can give: from a minute to ten years, or without
// an end.
func Lease(d time.Duration) pools.Duration {
	if d > maxLease {
		return pools.Infinite
	}
	return pools.Duration(max(time.Minute, d))
}

// Finish makes the config of the farm. It is called once, when the reader is done.
func (f *Farm) Finish() pools.Config {
	machines := f.merge()
	f.proxies()
	f.usable(machines)
	if name := f.Cluster; name != "" && !slices.ContainsFunc(f.clusters, func(c pools.Cluster) bool { return c.Name == name }) {
		f.AddCluster(pools.Cluster{Name: name, Kubeconfig: name + ".kubeconfig"})
	}
	c := pools.Config{Server: pools.Server{Interfaces: f.Interfaces, Address: f.Address, DHCP: f.DHCP}, Clusters: f.clusters}
	if len(f.networks) == 0 && f.mode() == "" {
		f.Lost(pools.Origin{}, "no network is named: dhcp: proxy is written, with which another server gives the addresses (--subnet names networks)")
		f.DHCP, c.Server.DHCP = pools.DHCPProxy, pools.DHCPProxy
	}
	for _, n := range f.networks {
		if !n.there {
			c.Subnets = append(c.Subnets, f.subnet(n))
		}
	}
	f.derive()
	f.shareGlobal(c.Subnets)
	if f.SelfMade {
		selfMade(c.Subnets)
	}
	subnets := f.withThere(c.Subnets)
	f.nodes(machines, subnets)
	f.landings(subnets)
	if len(f.pools) == 0 {
		f.PoolNamed(f.Pool)
		f.Lost(pools.Origin{}, "no machine is named: pool %q is empty", f.pools[0].Name)
	}
	f.keepPassword()
	f.tagged(&c)
	f.Global.homes = []string{"tags." + allTag, "subnets[]"}
	for _, p := range f.pools {
		c.Pools = append(c.Pools, *p)
	}
	if f.Namespace != "" {
		f.asTenants(&c)
	}
	return c
}

// mode returns how machines get their addresses: as the operator or the other config says, or else
// as the config does that the import adds to.
func (f *Farm) mode() pools.DHCPMode { return cmp.Or(f.DHCP, f.there.Server.DHCP) }

// proxies decides how networks are served in which another server gives the addresses:
// server.dhcp is for all networks, so where drover gives addresses in one these are left out.
func (f *Farm) proxies() {
	leases := slices.ContainsFunc(f.networks, func(n *Network) bool { return !n.Proxy && n.At.File != "" && n.Prefix.Addr().Is4() })
	for _, n := range slices.Clone(f.networks) {
		switch {
		case !n.Proxy:
		case f.DHCP == pools.DHCPProxy || f.DHCP == "" && !leases:
			f.DHCP = pools.DHCPProxy
			f.Taken(n.At, "server.dhcp", "proxy")
		default:
			f.restricted(n.At, "network %s is left out: another server gives its addresses (proxy), and drover gives those of the other networks; server.dhcp is for all", n.Prefix)
			f.networks = slices.DeleteFunc(f.networks, func(o *Network) bool { return o == n })
		}
	}
}

// usable drops the networks that drover cannot have, and guesses those of machines that
// have none.
func (f *Farm) usable(machines []*Machine) {
	all := f.networks
	f.networks = nil
	for _, n := range all {
		low, high := 8, 30
		if n.Prefix.Addr().Is6() {
			low, high = 32, 126
		}
		other := slices.IndexFunc(f.networks, func(o *Network) bool { return o.Prefix.Overlaps(n.Prefix) })
		there := slices.IndexFunc(f.there.Subnets, func(s pools.Subnet) bool { return s.CIDR.Overlaps(n.Prefix) && s.CIDR.Masked() != n.Prefix })
		switch {
		case there >= 0:
			f.LeftOut(n.At, "network %s overlaps %s, which the config has: that one stays", n.Prefix, f.there.Subnets[there].CIDR)
		case n.Prefix.Bits() < low || n.Prefix.Bits() > high:
			f.LeftOut(n.At, "network %s: its prefix length is not from %d to %d", n.Prefix, low, high)
		case other >= 0:
			f.LeftOut(n.At, "network %s overlaps %s: a machine must be in one only", n.Prefix, f.networks[other].Prefix)
		default:
			f.networks = append(f.networks, n)
		}
	}
	for _, s := range f.there.Subnets {
		if f.networkWith(s.CIDR.Masked()) == nil {
			f.Network(s.CIDR, pools.Origin{}).there = true
		}
	}
	for _, m := range machines {
		f.guess(m.At, m.IP, 24)
		f.guess(m.At, m.IP6, 64)
	}
}

// withThere returns subnets, and those that only the config has that the import adds to.
func (f *Farm) withThere(subnets []pools.Subnet) []pools.Subnet {
	return slices.Concat(subnets, slices.DeleteFunc(slices.Clone(f.there.Subnets), func(s pools.Subnet) bool { return !f.networkWith(s.CIDR.Masked()).there }))
}

// guess adds a network around the address of a machine that is in none.
func (f *Farm) guess(at pools.Origin, a netip.Addr, bits int) {
	if !f.Guess || !a.IsValid() || f.NetworkOf(a) != nil {
		return
	}
	p := netip.PrefixFrom(a, bits).Masked()
	if slices.ContainsFunc(f.networks, func(n *Network) bool { return n.Prefix.Overlaps(p) }) {
		return
	}
	f.Network(p, at)
	f.Lost(at, "the network of %s is not named: %s is a guess (name the right one with --subnet)", a, p)
	f.Comment("CHANGE: a guess, as the network is not named.", "subnets", p.String())
}

// subnet makes the subnet of a network. Options that a subnet has no field for become a
// tag.
func (f *Farm) subnet(n *Network) pools.Subnet {
	s := pools.Subnet{CIDR: n.Prefix, Lease: n.Lease, Network: n.Segment, Relays: n.Relays}
	n.homes = []string{"subnets." + s.CIDR.String()}
	if s.Is6() {
		s.DNS, s.Domain = n.DNS6, n.Domain6
		return s
	}
	if routers := n.take("router"); len(routers) > 0 {
		if n.Prefix.Contains(routers[0]) {
			s.Router = routers[0]
		}
		if len(routers) > 1 || !s.Router.IsValid() {
			n.Options["router"] = texts(routers)
		}
	}
	s.DNS = n.take("dns-server")
	if domain := strings.Join(n.Options["domain-name"], ""); option.IsDomain(domain) {
		s.Domain = domain
		delete(n.Options, "domain-name")
	}
	if len(n.Options) > 0 {
		name, t := f.tag("net-" + n.Prefix.Addr().String())
		n.tag = name
		n.homes = append(n.homes, "tags."+name)
		t.Options = n.Options
		f.Comment("For the machines of "+n.Prefix.String()+".", "tags", name)
	}
	return s
}

// selfMade gives machines the IPv6 addresses that they make themselves, if there is one IPv6
// network: in that of their IPv4 addresses.
func selfMade(subnets []pools.Subnet) {
	isIPv6 := func(s pools.Subnet) bool { return s.Is6() }
	i := slices.IndexFunc(subnets, isIPv6)
	if i < 0 || len(subnets) > 2 || len(subnets) == 2 && isIPv6(subnets[0]) == isIPv6(subnets[1]) || subnets[i].CIDR.Bits() != 64 {
		return
	}
	subnets[i].SLAAC = true
	for j := range subnets {
		subnets[j].Network = "nodes"
	}
}

func texts(addrs []netip.Addr) (all pools.Strings) {
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return all
}

// shareGlobal gives the subnets the router, the name servers and the domain of all
// machines, where they have none of their own.
func (f *Farm) shareGlobal(subnets []pools.Subnet) {
	var v4 []*pools.Subnet
	for i := range subnets {
		if !subnets[i].Is6() {
			v4 = append(v4, &subnets[i])
		}
	}
	if len(v4) == 0 {
		return
	}
	routers := f.Global.take("router")
	for _, s := range v4 {
		i := slices.IndexFunc(routers, s.CIDR.Contains)
		if i >= 0 && !s.Router.IsValid() {
			s.Router = routers[i]
		}
	}
	own := slices.ContainsFunc(v4, func(s *pools.Subnet) bool { return s.Router.IsValid() })
	if len(routers) > 0 && (!own || len(routers) > 1 && len(v4) == 1) {
		f.Global.Options["router"] = texts(routers)
	}
	dns := f.Global.take("dns-server")
	for _, s := range v4 {
		if len(s.DNS) == 0 {
			s.DNS = dns
		}
	}
	domain := strings.Join(f.Global.Options["domain-name"], "")
	if !option.IsDomain(domain) {
		return
	}
	delete(f.Global.Options, "domain-name")
	for _, s := range v4 {
		s.Domain = cmp.Or(s.Domain, domain)
	}
}

// tagged makes the tags of the config.
func (f *Farm) tagged(c *pools.Config) {
	if len(f.Global.Options) > 0 {
		_, t := f.tag(allTag)
		t.Options = f.Global.Options
	}
	for _, name := range slices.Sorted(maps.Keys(f.tags)) {
		t := f.tags[name]
		t.homes = append(t.homes, "tags."+name)
		if len(t.Options) > 0 {
			t.DHCPOptions = t.Options
		}
		if c.Tags == nil {
			c.Tags = map[string]pools.Tag{}
		}
		c.Tags[name] = t.Tag
	}
}

// nodes makes the nodes of the machines, in their pools.
func (f *Farm) nodes(machines []*Machine, subnets []pools.Subnet) {
	names := map[string]bool{}
	for _, m := range machines {
		if !f.bootable(m, subnets) {
			f.left = m.String()
			continue
		}
		m.Name = f.nodeName(m, names)
		names[m.Name] = true
		if n := f.NetworkOf(m.IP); n != nil {
			if n.tag != "" {
				m.Tags = append([]string{n.tag}, m.Tags...)
			}
			if m.Lease == n.Lease {
				m.Lease = 0 // it has that of its network
			}
		}
		p := f.PoolNamed(cmp.Or(m.Pool, f.Pool))
		m.Tags = slices.DeleteFunc(m.Tags, func(t string) bool { return slices.Contains(p.Tags, t) })
		if m.scope != nil {
			m.scope.homes = append(m.scope.homes, "pools."+p.Name+".nodes."+m.Name)
		}
		p.Nodes = append(p.Nodes, m.Node)
	}
	f.pools = slices.DeleteFunc(f.pools, func(p *pools.Pool) bool { return len(p.Nodes) == 0 })
}

// bootable reports whether drover can have a machine, and notes why not.
func (f *Farm) bootable(m *Machine, subnets []pools.Subnet) bool {
	about := "machine " + m.String()
	i := slices.IndexFunc(subnets, func(s pools.Subnet) bool { return m.IP.IsValid() && s.CIDR.Contains(m.IP) })
	in6 := slices.ContainsFunc(subnets, func(s pools.Subnet) bool { return m.IP6.IsValid() && s.CIDR.Contains(m.IP6) })
	if m.IP.IsValid() && m.IP6.IsValid() && (i >= 0) != in6 {
		lost := &m.IP
		if i >= 0 {
			lost = &m.IP6
		}
		f.LeftOut(m.At, "%s: address %s is in none of the networks (name its network with --subnet): the node has its other address alone", about, *lost)
		*lost = netip.Addr{}
	}
	switch {
	case len(m.MACs) == 0 && m.Match.IsZero() && m.Ignore:
		f.Close(m.At, "ignore "+about)
	case len(m.MACs) == 0 && m.Match.IsZero():
		f.LeftOut(m.At, "%s has no MAC address (drover finds a machine by its MACs, or by match)", about)
	case m.Ignore:
		return true
	case m.IP6.IsValid() && !in6:
		f.LeftOut(m.At, "%s: address %s is in none of the networks (name its network with --subnet)", about, m.IP6)
	case !m.IP.IsValid() && !m.IP6.IsValid() && f.mode() != pools.DHCPProxy:
		f.LeftOut(m.At, "%s has no address, and a node of drover has a fixed one (give it one, or leave it to a catch-all pool)", about)
	case !m.IP.IsValid():
		return true
	case i < 0:
		f.LeftOut(m.At, "%s: address %s is in none of the networks (name its network with --subnet)", about, m.IP)
	case slices.Contains(f.fixed(&subnets[i]), m.IP):
		f.clash(m.At, "%s: address %s is that of the network %s, its broadcast, its router or this server", about, m.IP, subnets[i].CIDR)
	default:
		return true
	}
	return false
}

// fixed returns the addresses of a subnet that no machine can have.
func (f *Farm) fixed(s *pools.Subnet) []netip.Addr {
	return []netip.Addr{s.CIDR.Addr(), LastOf(s.CIDR), s.Router, f.Address, s.Address}
}

// nodeName returns a name for a machine that no other has: the first label of its own, or
// all of them.
func (f *Farm) nodeName(m *Machine, used map[string]bool) string {
	first, _, _ := strings.Cut(m.Name, ".")
	made := "host-" + Label(cmp.Or(m.Match.ClientID, m.Match.CircuitID, m.IP.String()))
	if len(m.MACs) > 0 {
		made = pools.CatchAllName(m.MACs[0])
	}
	for _, name := range []string{Label(first), Label(m.Name), made, Label(made + "-2")} {
		mac, isMade := pools.CatchAllMAC(name)
		if name == "" || used[name] || isMade && !slices.Contains(m.MACs, mac) {
			continue
		}
		if m.Name != "" && !strings.EqualFold(name, first) {
			f.Taken(m.At, "pools[].nodes[].name; there "+m.Name, name)
		}
		return name
	}
	return made
}
