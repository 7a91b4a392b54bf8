package pools

import (
	"net/netip"
	"slices"
)

// yield leaves out nodes of chassis that are in the way of those which the config
// file declares. The file is the operator's: to declare a machine there that a
// chassis brought before must not keep the server from starting.
func (c *Config) yield(added []PoolNode) (kept, overruled []PoolNode) {
	if !slices.ContainsFunc(added, func(n PoolNode) bool { return !n.Place.IsZero() }) {
		return added, nil
	}
	name, mac, ip, bay := map[string]bool{}, map[MAC]bool{}, map[netip.Addr]bool{}, map[Place]bool{}
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			name[n.Name], bay[n.Place] = true, true
			if n.IP.IsValid() {
				ip[n.IP] = true
			}
			for _, m := range n.MACs {
				mac[m] = true
			}
		}
	}
	for _, n := range added {
		taken := name[n.Name] || bay[n.Place] || ip[n.IP] || slices.ContainsFunc(n.MACs, func(m MAC) bool { return mac[m] })
		if !n.Place.IsZero() && taken {
			overruled = append(overruled, n)
		} else {
			kept = append(kept, n)
		}
	}
	return kept, overruled
}

// Overruled are the stored nodes of chassis that are not of the farm, because the
// config file declares their name, a MAC, their address or their place.
func (f *Farm) Overruled() []PoolNode { return f.overruled }
