package config

import (
	"net/netip"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// SetLeases gives the lease table to the farm: at returns the lease of an address that its
// machine may still use. From then on a new node is refused an address that another
// machine leases. A node of the config file is not refused, nor one of a chassis: it gets
// its address when the lease has ended, see [resolve.Farm.Contested].
func (l *Live) SetLeases(at func(netip.Addr) (pools.Lease, bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases = at
	l.swap(l.checked)
}

// Leased returns the nodes whose address another machine leases now.
func (l *Live) Leased() (all []*pools.LeasedError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leased(&l.checked)
}

func (l *Live) contested(c *resolve.Checked) (all []netip.Addr) {
	for _, e := range l.leased(c) {
		all = append(all, e.Lease.Address)
	}
	return all
}

func (l *Live) leased(c *resolve.Checked) (all []*pools.LeasedError) {
	check := func(n *pools.Node) {
		for _, a := range [...]netip.Addr{n.IP, n.IP6} {
			if e := l.leasedTo(n, a); e != nil {
				all = append(all, e)
			}
		}
	}
	for i := range c.Config.Pools {
		for j := range c.Config.Pools[i].Nodes {
			check(&c.Config.Pools[i].Nodes[j])
		}
	}
	for i := range c.Added {
		check(&c.Added[i].Node)
	}
	return all
}

// leasedTo returns the error for a node whose address a another machine leases, or nil.
func (l *Live) leasedTo(n *pools.Node, a netip.Addr) *pools.LeasedError {
	if l.leases == nil || !a.IsValid() {
		return nil
	}
	lease, ok := l.leases(a)
	if !ok || lease.Of(n) || !lease.Active(time.Now()) {
		return nil
	}
	return &pools.LeasedError{Node: n.Name, Lease: lease}
}
