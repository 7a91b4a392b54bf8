package config

import (
	"net/netip"
	"slices"

	"drover/pools"
)

// allWait lets all nodes wait.
func allWait(string) bool { return true }

// splitWaiting separates the nodes of the API whose pool, subnet or tags are neither in the file
// nor active objects, if these can be objects and the nodes may wait for them.
func splitWaiting(c *pools.Config, added []pools.PoolNode, mayWait func(name string) bool) (kept, waiting []pools.PoolNode) {
	if c.Server.Objects.Namespace == "" || mayWait == nil {
		return added, nil
	}
	pool := map[string]bool{}
	for _, p := range c.Pools {
		pool[p.Name] = true
	}
	there := func(a netip.Addr) bool { return !a.IsValid() || c.SubnetOf(a) >= 0 }
	noTag := func(name string) bool { _, ok := c.Tags[name]; return !ok }
	for _, n := range added {
		if pool[n.Pool] && there(n.IP) && there(n.IP6) && !slices.ContainsFunc(n.Tags, noTag) || !mayWait(n.Name) {
			kept = append(kept, n)
		} else {
			waiting = append(waiting, n)
		}
	}
	return kept, waiting
}

// splitShadowed separates the nodes of chassis that a node of the config file shadows:
// it has their name, one of their MACs, their address or their slot. An operator can so
// declare a machine that was imported from a chassis, without an error at the start.
func splitShadowed(c *pools.Config, added []pools.PoolNode) (kept, shadowed []pools.PoolNode) {
	if !slices.ContainsFunc(added, func(n pools.PoolNode) bool { return !n.ChassisSlot.IsZero() }) {
		return added, nil
	}
	name, mac, ip, slot := map[string]bool{}, map[pools.MAC]bool{}, map[netip.Addr]bool{}, map[pools.ChassisSlot]bool{}
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			name[n.Name], slot[n.ChassisSlot] = true, true
			for _, a := range [...]netip.Addr{n.IP, n.IP6} {
				if a.IsValid() {
					ip[a] = true
				}
			}
			for _, m := range n.MACs {
				mac[m] = true
			}
		}
	}
	for _, n := range added {
		taken := name[n.Name] || slot[n.ChassisSlot] || ip[n.IP] || ip[n.IP6] || slices.ContainsFunc(n.MACs, func(m pools.MAC) bool { return mac[m] })
		if !n.ChassisSlot.IsZero() && taken {
			shadowed = append(shadowed, n)
		} else {
			kept = append(kept, n)
		}
	}
	return kept, shadowed
}
