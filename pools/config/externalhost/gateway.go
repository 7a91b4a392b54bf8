package externalhost

import (
	"fmt"
	"slices"

	"drover/pools"
)

// Role returns what is wrong with the role of a pool, whatever its cluster is; nil: nothing.
func Role(p pools.Pool) error {
	switch {
	case !slices.Contains([]pools.PoolRole{"", pools.RoleNode, pools.RoleGateway}, p.Role):
		return pools.Hint("role: node, or role: gateway", "%q is not a role of a pool", p.Role)
	case p.Role == pools.RoleGateway && p.Cluster == "":
		return pools.Hint("cluster: NAME", "gateways are hosts of a cluster, and the pool has none")
	case p.Role == pools.RoleGateway && p.CatchAll:
		return pools.Hint("name its machines under nodes:", "a catch-all pool has no gateways: flannel on the nodes needs their addresses")
	}
	return nil
}

// hostsOf returns the hosts of a cluster: its own, and the declared nodes of pools of gateways.
func hostsOf(cfg *pools.Config, cluster *pools.Cluster) (all []placed) {
	for i, h := range cluster.Hosts {
		all = append(all, placed{h, fmt.Sprintf("hosts[%d]", i)})
	}
	for i, p := range cfg.Pools {
		if p.Role != pools.RoleGateway || p.Cluster != cluster.Name || p.Ignore {
			continue
		}
		for j, n := range p.Nodes {
			if !n.Ignore {
				all = append(all, placed{pools.ExternalHost{Name: n.Name, Address: n.IP, Size: DefaultSize}, fmt.Sprintf("pools[%d].nodes[%d]", i, j)})
			}
		}
	}
	return all
}

// gateways checks that the network of the cluster is one that gateways can take part in.
func (c *checker) gateways(cfg *pools.Config) {
	n := c.cluster.HostNetwork
	for i, p := range cfg.Pools {
		if p.Role != pools.RoleGateway || p.Cluster != c.cluster.Name {
			continue
		}
		path := fmt.Sprintf("pools[%d].role", i)
		switch {
		case n == nil:
			c.failf(path, "hostNetwork of the cluster says that it is flannel, and which part of it is for hosts; gateways cannot be in Cilium or Calico", "pool %q has gateways, and the network of the cluster is not known", p.Name)
		case unsupported[n.CNI] != "":
			c.failf(path, unsupported[n.CNI], "pool %q has gateways, and %s is not supported", p.Name, n.CNI)
		case n.CNI != pools.Flannel:
			c.failf(path, "cni: flannel", "pool %q has gateways, and the network %q of the cluster is not supported", p.Name, n.CNI)
		}
	}
}
