package resolve

import (
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
)

// retired is the index of the nodes that the config has lost. They answer no query but that of
// a machine that keeps an address which it has already.
type retired struct {
	byName map[string]*entry
	byMAC  map[pools.MAC]*entry
	byIP   map[netip.Addr]*entry // without those that a node declares now
	all    []pools.RetiredNode
}

// WithRetired returns the farm with retired nodes. Those that the farm has again, by their name or
// by one of their MACs, are left out.
func (f *Farm) WithRetired(all []pools.RetiredNode) *Farm {
	next := *f
	next.retired = retired{byName: map[string]*entry{}, byMAC: map[pools.MAC]*entry{}, byIP: map[netip.Addr]*entry{}}
	profiles := map[string]*profile{}
	for i := range all {
		if !f.HasMachine(&all[i].PoolNode) {
			next.retire(&all[i], profiles)
		}
	}
	return &next
}

// HasMachine reports whether the farm has a node, if under another name: one of its MACs is declared.
func (f *Farm) HasMachine(n *pools.PoolNode) bool {
	return f.byName[n.Name] != nil || slices.ContainsFunc(n.MACs, f.Declares)
}

func (f *Farm) retire(n *pools.RetiredNode, profiles map[string]*profile) {
	e := &entry{NodeInfo: pools.NodeInfo{PoolNode: n.PoolNode, Source: pools.Origin{Path: "retired node " + n.Name}}, pool: -1, retired: true}
	e.name, e.macs, e.address, e.slaac = e.Name, e.MACs, e.IP, f.Config.SLAAC(&e.Node)
	e.subnet, e.subnet6 = f.Config.SubnetOf(e.IP), f.Config.SubnetOf(e.IP6)
	if e.slaac.IsValid() {
		e.subnet6 = f.Config.SubnetOf(e.slaac.Addr())
	}
	e.pool = slices.IndexFunc(f.Config.Pools, func(p pools.Pool) bool { return p.Name == n.Pool })
	var tags []string
	if e.pool >= 0 {
		tags = f.Config.Pools[e.pool].Tags
	}
	tags = tagOrder(tags, e.Tags) // those that are gone are skipped
	key := strings.Join(tags, "\n")
	if profiles[key] == nil {
		profiles[key] = f.merge(tags)
	}
	e.profile = profiles[key]
	set := e.profile.optionSet.with(e.DHCPOptions)
	e.options, e.options6 = set.options(), set.options6()
	f.retired.all = append(f.retired.all, *n)
	f.retired.byName[e.Name] = e
	reserve := func(a netip.Addr) {
		if a.IsValid() && f.byIP[a] == nil {
			f.retired.byIP[a] = e
		}
	}
	reserve(e.IP)
	reserve(e.IP6)
	for _, m := range e.MACs {
		f.retired.byMAC[m] = e
		if e.slaac.IsValid() {
			reserve(pools.EUI64(e.slaac, m))
		}
	}
}

// Retired returns the nodes that the config has lost, in the order in which they were given.
func (f *Farm) Retired() []pools.RetiredNode { return f.retired.all }

// IsRetired reports whether the node of a name is retired.
func (f *Farm) IsRetired(name string) bool { return f.retired.byName[name] != nil }

// RetiredNode returns the retired node of a name; false for none.
func (f *Farm) RetiredNode(name string) (n pools.PoolNode, ok bool) {
	if e := f.retired.byName[name]; e != nil {
		return e.PoolNode, true
	}
	return n, false
}

// RetiredOf returns the retired node that has a MAC; false for none.
func (f *Farm) RetiredOf(mac pools.MAC) (n pools.PoolNode, ok bool) {
	if e := f.retired.byMAC[mac]; e != nil {
		return e.PoolNode, true
	}
	return n, false
}

// RetiredAt returns the retired node for which an address is reserved.
func (f *Farm) RetiredAt(a netip.Addr) (n pools.PoolNode, ok bool) {
	if e := f.retired.byIP[a]; e != nil {
		return e.PoolNode, true
	}
	return n, false
}

// Lost returns the nodes of this farm that the next one has not: neither under their name, nor
// one of their MACs.
func (f *Farm) Lost(next *Farm) (lost []pools.NodeInfo) {
	for _, e := range f.entries {
		if !next.HasMachine(&e.PoolNode) {
			lost = append(lost, e.NodeInfo)
		}
	}
	return lost
}

// retiredFor returns the retired node of a machine that keeps an address: that of the node, or one
// that it leased as the node. It returns nil for all that begins a boot, and for an
// address that another node has now.
func (f *Farm) retiredFor(q *Query, l *pools.Lease) (e *entry, matched string) {
	if len(f.retired.all) == 0 || !q.byDHCP() || !q.Keeps.IsValid() || f.Reserved(q.Keeps) && f.retired.byIP[q.Keeps] == nil || f.Config.Server.DHCP == pools.DHCPProxy {
		return nil, ""
	}
	leased := l.Address == q.Keeps && !l.Released
	if e = f.retired.byMAC[q.MAC]; e != nil && (e.own(q.IPv6, q.MAC) == q.Keeps || leased && l.Node == e.Name) {
		return e, ""
	}
	if e = f.retired.byName[l.Node]; e != nil && len(e.MACs) == 0 && leased {
		return e, "lease"
	}
	return nil, ""
}

// refuseRetired returns the reason why a retired node gets no answer; "" when it gets one.
func (f *Farm) refuseRetired(e *entry, q *Query) string {
	switch at := f.Config.SubnetOf(q.Keeps); {
	case e.ignore || e.Ignore:
		return "the retired node " + e.Name + " was to be ignored"
	case at < 0:
		return "node " + e.Name + " is retired: the config has lost it, with the subnet of its address"
	case !f.sameNetwork(q.Link, at):
		return "node " + e.Name + " is retired, and asks from another network than that of its address"
	}
	return ""
}

// planRetired returns what a machine gets that runs as a retired node: its address and the options
// of its network. It has no image, no cluster and no settings.
func (f *Farm) planRetired(e *entry, q Query, matched string, l *pools.Lease) *Plan {
	p := &Plan{
		Node: e.name, MAC: q.MAC, MACs: e.macs, Matched: matched, Pool: e.Pool, Retired: true,
		Address: e.own(q.IPv6, q.MAC), Address6: e.own(true, q.MAC), Options: e.options, Options6: e.options6,
		Advertised: f.advertisedTo(e, &q, l), farm: f, entry: e, query: q, loader: -1,
	}
	if len(p.MACs) == 0 {
		p.MACs = []pools.MAC{q.MAC}
	}
	p.Boot.Server = p.Advertised.Address
	p.Subnet = f.Config.Subnets[f.Config.SubnetOf(q.Keeps)]
	p.Lease = p.Subnet.Lease
	if e.pool >= 0 {
		pool := &f.Config.Pools[e.pool]
		p.Broadcast = pool.Broadcast == pools.BroadcastAlways
		if pool.Lease != 0 {
			p.Lease = pool.Lease
		}
	}
	if e.Lease != 0 {
		p.Lease = e.Lease
	}
	return p
}

// whyRetired is [Plan.Why] of a retired node.
func (p *Plan) whyRetired() Why {
	why := Why{}
	for _, field := range []string{"node", "macs", "address", "pool", "lease", "subnet", "boot.server"} {
		why[field] = p.entry.Source
	}
	return why
}
