package config

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"drover/pools"
)

// Bounds of the lists of networks and relay agents. Each packet may search them.
const (
	maxClients = 64 // server.clients
	maxRelays  = 64 // relays of one subnet
)

// clients checks server.clients. A network of almost all addresses is a mistake: anyone
// could then have TFTP send to third parties.
func (c *checker) clients() {
	all := c.cfg.Server.Clients
	if len(all) > maxClients {
		c.failf("server.clients", "join networks that are next to each other", "server.clients has %d networks, more than %d", len(all), maxClients)
		return
	}
	for i, p := range all {
		path := fmt.Sprintf("server.clients[%d]", i)
		switch {
		case !p.IsValid(): // reported when it was read
		case p != p.Masked():
			c.failf(path, fmt.Sprintf("write %s", p.Masked()), "server.clients: %s has host bits set", p)
		case p.Bits() < 8 && p.Addr().Is4():
			c.failf(path, "list the networks that nodes are in", "server.clients: %s is larger than a /8", p)
		case p.Bits() < minBits6 && p.Addr().Is6():
			c.failf(path, "list the networks that nodes are in", "server.clients: %s is larger than a /%d", p, minBits6)
		case slices.Contains(all[:i], p):
			c.failf(path, "remove one", "server.clients: %s is listed twice", p)
		}
	}
}

// subnet4 checks what is special about a subnet of IPv4.
func (c *checker) subnet4(path, about string, s *pools.Subnet) {
	switch first := s.CIDR.Masked().Addr(); {
	case s.CIDR.Bits() < 8 || s.CIDR.Bits() > 30:
		c.failf(path+".cidr", "split or widen the network", "%s: prefix length is not from 8 to 30", about)
	case first.IsMulticast():
		c.failf(path+".cidr", "cidr: 10.28.0.0/16", "%s: hosts have no multicast addresses", about)
	case s.Router.IsValid() && !s.CIDR.Contains(s.Router):
		c.failf(path+".router", "nodes reach their router directly: give an address inside", "%s: router %s is outside of it", about, s.Router)
	case s.Router == first || s.Router == broadcast(s.CIDR):
		c.failf(path+".router", "write the router's own address, such as "+first.Next().String(), "%s: router %s is its network or broadcast address", about, s.Router)
	}
	for j, d := range s.DNS {
		at := fmt.Sprintf("%s.dns[%d]", path, j)
		switch {
		case !d.Is4():
			c.failf(at, "DHCPv4 carries IPv4 addresses", "%s: DNS server %s is not an IPv4 address", about, d)
		case !isHost(d) && (!d.IsLoopback() || !s.CIDR.Addr().IsLoopback()): // a farm in 127.0.0.0/8 is all on one host
			c.failf(at, "write an address at which nodes reach a name server, such as 10.28.0.1", "%s: DNS server %s is not the IPv4 address of a host", about, d)
		}
	}
}

// bootAddress checks the boot address of a subnet. It may be outside of the subnet: that of
// a load balancer, which forwards to this server.
func (c *checker) bootAddress(subnet int, about string) {
	s := c.cfg.Subnets[subnet]
	path := fmt.Sprintf("subnets[%d].address", subnet)
	switch a := s.Address; {
	case !a.IsValid(): // not set, or reported when it was read
	case s.Is6() && (!isHost6(a) || a.IsLinkLocalUnicast()):
		c.failf(path, "write this server's address for the nodes of the subnet, such as fd00:28::2", "%s: address %s is not the IPv6 address of a host", about, a)
	case !s.Is6() && !isHost(a):
		c.failf(path, "write this server's address for the nodes of the subnet, such as 10.28.0.2", "%s: address %s is not the IPv4 address of a host", about, a)
	case a == s.Router && s.Router.IsValid(), a == s.CIDR.Addr(), !s.Is6() && a == broadcast(s.CIDR):
		c.failf(path, "write this server's own address", "%s: address %s is that of the network, its broadcast or its router", about, a)
	}
}

// isHost reports whether an address can be the IPv4 address of one host.
func isHost(a netip.Addr) bool {
	return a.Is4() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// ownAddresses returns the addresses of this server in the config, each with the index of the
// subnet that it is of, or -1.
func (c *checker) ownAddresses() iter.Seq2[netip.Addr, int] {
	return func(yield func(netip.Addr, int) bool) {
		if a := c.cfg.Server.Address; a.IsValid() && !yield(a, -1) {
			return
		}
		for i, s := range c.cfg.Subnets {
			if s.Address.IsValid() && !yield(s.Address, i) {
				return
			}
		}
	}
}

// notOwn calls fail when an address is one of this server's, and reports whether it is.
func (c *checker) notOwn(a netip.Addr, fail func()) bool {
	for own, subnet := range c.ownAddresses() {
		if a == own {
			fail()
			c.conflictSubnet(subnet)
			return true
		}
	}
	return false
}

// notInfrastructure calls fail when an address of a declared node is that of another host of the
// config. Nodes of the API are refused when they get it ([Live.refuseTaken]): a stored one does not
// stop the start.
func (c *checker) notInfrastructure(path, field, about string, a netip.Addr, fail reporter) {
	if path == "" {
		return
	}
	if c.infrastructure == nil {
		c.infrastructure = c.cfg.Infrastructure()
	}
	if what := c.infrastructure[a]; what != "" {
		fail(field, "choose another: a machine has an address of its own", "%s: %s is the address of %s", about, a, what)
	}
}

// conflictSubnet names a subnet as the other place of the mistake that was added last, if its
// index is not negative.
func (c *checker) conflictSubnet(i int) {
	if i >= 0 {
		c.conflict(c.at(fmt.Sprintf("subnets[%d]", i)))
	}
}

// relays checks the relay agents of a subnet.
func (c *checker) relays(subnet int, about string) {
	s := c.cfg.Subnets[subnet]
	path := fmt.Sprintf("subnets[%d].relays", subnet)
	if len(s.Relays) > maxRelays {
		c.failf(path, "a relay agent needs an entry only if its address is in no subnet", "%s: %d relays, more than %d", about, len(s.Relays), maxRelays)
		return
	}
	for i, a := range s.Relays {
		at := fmt.Sprintf("%s[%d]", path, i)
		holder := c.cfg.SubnetOf(a)
		switch {
		case !a.IsValid(): // reported when it was read
		case s.Is6() && (!isHost6(a) || !a.IsGlobalUnicast()):
			c.failf(at, "write the address that the relay agent sends from, or its link-address, such as fd00:28::1", "%s: relay %s is not the IPv6 address of a host", about, a)
		case !s.Is6() && !isHost(a):
			c.failf(at, "write the address that the relay agent puts into giaddr, such as 10.99.0.1", "%s: relay %s is not the IPv4 address of a host", about, a)
		case holder >= 0 && holder != subnet:
			c.failf(at, "remove it: a relay agent with that address is for the subnet that holds it", "%s: relay %s is in subnet %s", about, a, c.cfg.Subnets[holder].CIDR)
			c.conflictSubnet(holder)
		case slices.Contains(s.Relays[:i], a):
			c.failf(at, "remove one", "%s: relay %s is listed twice", about, a)
		default:
			c.otherRelay(subnet, at, about, a)
		}
	}
}

// otherRelay checks that no earlier subnet lists the relay agent.
func (c *checker) otherRelay(subnet int, at, about string, a netip.Addr) {
	i := slices.IndexFunc(c.cfg.Subnets[:subnet], func(s pools.Subnet) bool { return slices.Contains(s.Relays, a) })
	if i >= 0 {
		c.failf(at, "a relay agent is for one subnet: remove it from the other", "%s: relay %s is already that of subnet %s", about, a, c.cfg.Subnets[i].CIDR)
		c.conflictSubnet(i)
	}
}
