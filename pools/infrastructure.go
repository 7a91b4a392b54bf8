package pools

import (
	"fmt"
	"net"
	"net/netip"
)

// Infrastructure returns what the config says the hosts with these addresses are, other than
// machines: routers, name servers, relay agents, API servers, hosts outside a cluster and
// management processors. No machine may have such an address. Hosts that the config knows by
// name alone are not in it.
func (c *Config) Infrastructure() map[netip.Addr]string {
	all := map[netip.Addr]string{}
	add := func(a netip.Addr, format string, args ...any) {
		if a = a.Unmap(); a.IsValid() && all[a] == "" {
			all[a] = fmt.Sprintf(format, args...)
		}
	}
	for _, s := range c.Subnets {
		add(s.Router, "the router of %s", s.CIDR)
		for _, a := range s.Relays {
			add(a, "a relay agent of %s", s.CIDR)
		}
		for _, a := range s.DNS {
			add(a, "a name server of %s", s.CIDR)
		}
	}
	for i := range c.Clusters {
		k := &c.Clusters[i]
		add(hostAddress(k.Endpoint), "the API server of cluster %q", k.Name)
		// The address of a NodePort is that of a Node, which may be a machine.
		if p := k.ControlPlane; p != nil && p.Endpoint.ServiceType != NodePort {
			add(p.Endpoint.Address, "the API server of cluster %q", k.Name)
		}
		for _, h := range k.Hosts {
			add(h.Address, "host %q of cluster %q", h.Name, k.Name)
		}
	}
	for _, ch := range c.Chassis {
		add(hostAddress(ch.Address), "the manager of chassis %q", ch.Name)
	}
	for _, p := range c.Pools {
		for i := range p.Nodes {
			n := &p.Nodes[i]
			add(processorAddress(n.Power), "the management processor of node %q", n.Name)
		}
	}
	return all
}

// processorAddress returns the address of a management processor, unless it is known by a name.
func processorAddress(p *NodePower) netip.Addr {
	if p == nil || p.Driver == Exec {
		return netip.Addr{}
	}
	return hostAddress(p.Address)
}

// hostAddress returns the address of a text like 10.0.0.1 or 10.0.0.1:443; of one with a name the
// zero Addr.
func hostAddress(s string) netip.Addr {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}
