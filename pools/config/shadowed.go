package config

import (
	"net/netip"
	"slices"

	"drover/pools"
)

// dropShadowed separates the nodes of chassis that a node of the config file shadows:
// it has their name, one of their MACs, their address or their slot. An operator can so
// declare a machine that was imported from a chassis, without an error at the start.
func dropShadowed(c *pools.Config, added []pools.PoolNode) (kept, shadowed []pools.PoolNode) {
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
