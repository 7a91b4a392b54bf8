package config

import (
	"fmt"
	"net/netip"

	"drover/pools"
)

// minBits6 is the length of the shortest IPv6 prefix in the config: that of a whole
// provider.
const minBits6 = 32

// isHost6 reports whether a host can have the address: no IPv4 address in another form,
// and no zone.
func isHost6(a netip.Addr) bool {
	return a.Is6() && !a.Is4In6() && a.Zone() == "" && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast()
}

// subnet6 checks what is special about a subnet of IPv6.
func (c *checker) subnet6(path, about string, s *pools.Subnet) {
	switch first := s.CIDR.Addr(); {
	case !isHost6(first) || first.IsLinkLocalUnicast():
		c.failf(path+".cidr", "cidr: fd00:28::/64, or a prefix of your provider", "%s: hosts have no such addresses beside those of the link", about)
	case s.CIDR.Bits() < minBits6 || s.CIDR.Bits() > 126:
		c.failf(path+".cidr", "a network of machines is a /64", "%s: prefix length is not from %d to 126", about, minBits6)
	}
	if s.Router.IsValid() {
		c.failf(path+".router", "remove it: nodes learn their router from its advertisements", "%s: DHCPv6 has no option for a router", about)
	}
	for j, d := range s.DNS {
		if !isHost6(d) {
			c.failf(fmt.Sprintf("%s.dns[%d]", path, j), "DHCPv6 carries IPv6 addresses", "%s: DNS server %s is not the IPv6 address of a host", about, d)
		}
	}
}

// leaseRange6 checks the IPv6 range of a catch-all pool.
func (c *checker) leaseRange6(path, about string, r pools.Range) {
	first, last := c.cfg.SubnetOf(r.First), c.cfg.SubnetOf(r.Last)
	switch {
	case !r.First.Is6():
		c.failf(path, "range6: fd00:28::1000-fd00:28::1fff", "%s: range6 %s is not of IPv6", about, r)
	case r.Last.Less(r.First):
		c.failf(path, "swap them", "%s: range6 %s ends before it starts", about, r)
	case first < 0 || first != last:
		c.failf(path, "give both ends inside one of subnets:", "%s: range6 %s is not inside one subnet", about, r)
		c.conflictSubnet(max(first, last))
	case r.Longer6(MaxRange):
		c.failf(path, "make it shorter", "%s: range6 %s has more than %d addresses", about, r, MaxRange)
	case r.First == c.cfg.Subnets[first].CIDR.Addr():
		c.failf(path, "start the range behind it", "%s: range6 %s holds %s, which every router of the subnet has (RFC 4291, section 2.6.1)", about, r, r.First)
		c.conflictSubnet(first)
	}
}

// hasIPv6 reports whether a node has an IPv6 address, or makes one itself.
func (c *checker) hasIPv6(n *pools.Node) bool { return n.IP6.IsValid() || c.cfg.SLAAC(n).IsValid() }

// nodeSLAAC checks the IPv6 addresses that a node makes of its MACs, see [pools.Config.SLAAC].
func (c *checker) nodeSLAAC(about string, n pools.Node, here use, used *firstUses, fail reporter) {
	prefix := c.cfg.SLAAC(&n)
	if !prefix.Addr().Is6() || prefix.Bits() != 64 {
		return
	}
	for i, m := range n.MACs {
		if used.mac[m] != here {
			continue // it was reported
		}
		a, field := pools.EUI64(prefix, m), fmt.Sprintf(".macs[%d]", i)
		if first, dup := used.ip[a]; dup {
			fail(field, "give the other node another ip6", "%s: %s makes itself the address %s (slaac), which is already that of %s", about, m, a, first)
			c.conflict(first.at)
			continue
		}
		c.notOwn(a, func() {
			fail(field, "give this server another address", "%s: %s makes itself the address %s (slaac), which is this server's own", about, m, a)
		})
		used.ip[a] = here
	}
}

// nodeAddress6 checks the IPv6 address of a node.
func (c *checker) nodeAddress6(about, path string, n pools.Node, here use, used *firstUses, fail reporter) {
	if !n.IP6.IsValid() {
		c.nodeSLAAC(about, n, here, used, fail)
		return
	}
	i := c.cfg.SubnetOf(n.IP6)
	switch {
	case !isHost6(n.IP6):
		fail(".ip6", "ip6: fd00:28::173", "%s: %s is not the IPv6 address of a host", about, n.IP6)
		return
	case i < 0:
		fail(".ip6", "declare its network under subnets:, or mend the address", "%s: address %s is in none of the subnets", about, n.IP6)
		return
	case c.notOwn(n.IP6, func() { fail(".ip6", "choose another", "%s: %s is this server's own address", about, n.IP6) }):
	case n.IP6 == c.cfg.Subnets[i].CIDR.Addr():
		fail(".ip6", "choose another", "%s: %s is the address that every router of %s has (RFC 4291, section 2.6.1)", about, n.IP6, c.cfg.Subnets[i].CIDR)
		c.conflictSubnet(i)
	default:
		c.notInfrastructure(path, ".ip6", about, n.IP6, fail)
	}
	if first, dup := used.ip[n.IP6]; dup {
		fail(".ip6", "give each node its own", "%s: address %s is already that of %s", about, n.IP6, first)
		c.conflict(first.at)
		return
	}
	used.ip[n.IP6] = here
}
