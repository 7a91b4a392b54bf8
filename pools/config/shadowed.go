package config

import (
	"net/netip"
	"slices"

	"drover/pools"
)

// dropShadowed leaves out the nodes of chassis that a node of the config file
// shadows: it has their name, a MAC, their address or their slot. The file is the operator's: to declare a machine there that a
// chassis brought before must not keep the server from starting.
func dropShadowed(c *pools.Config, added []pools.PoolNode) (kept, shadowed []pools.PoolNode) {
	if !slices.ContainsFunc(added, func(n pools.PoolNode) bool { return !n.ChassisSlot.IsZero() }) {
		return added, nil
	}
	name, mac, ip, bay := map[string]bool{}, map[pools.MAC]bool{}, map[netip.Addr]bool{}, map[pools.ChassisSlot]bool{}
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			name[n.Name], bay[n.ChassisSlot] = true, true
			if n.IP.IsValid() {
				ip[n.IP] = true
			}
			for _, m := range n.MACs {
				mac[m] = true
			}
		}
	}
	for _, n := range added {
		taken := name[n.Name] || bay[n.ChassisSlot] || ip[n.IP] || slices.ContainsFunc(n.MACs, func(m pools.MAC) bool { return mac[m] })
		if !n.ChassisSlot.IsZero() && taken {
			shadowed = append(shadowed, n)
		} else {
			kept = append(kept, n)
		}
	}
	return kept, shadowed
}
