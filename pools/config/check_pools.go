package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/externalhost"
	"drover/pools/config/match"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// MaxRange bounds how many addresses a catch-all pool may lease from.
const MaxRange = 1 << 16

// firstUses holds the first use of each MAC, address, name, identity and slot of nodes.
type firstUses struct {
	mac  map[pools.MAC]use
	ip   map[netip.Addr]use
	name map[string]use
	id   map[match.Identity]use // of nodes without MACs
	slot map[pools.ChassisSlot]use
}

type use struct {
	node string
	at   pools.Origin
}

func (u use) String() string { return fmt.Sprintf("node %q in %s", u.node, u.at.Position()) }

func (c *checker) pools(added []pools.PoolNode) {
	seen := map[string]string{}
	used := firstUses{map[pools.MAC]use{}, map[netip.Addr]use{}, map[string]use{}, map[match.Identity]use{}, map[pools.ChassisSlot]use{}}
	if len(c.cfg.Pools) == 0 && !c.isSet("pools[0]") && c.cfg.Server.Objects.Namespace == "" {
		c.failf("pools", "pools: [{name: compute, image: debian-12, nodes: [...]}]", "no pools")
	}
	for i, p := range c.cfg.Pools {
		path := fmt.Sprintf("pools[%d]", i)
		about := fmt.Sprintf("pool %q", p.Name)
		c.name(path, "pool", p.Name, seen)
		c.pool(path, about, p)
		c.reachable(i)
		for j, n := range p.Nodes {
			at := fmt.Sprintf("%s.nodes[%d]", path, j)
			c.node(at, c.at(at), n, &used)
			c.ofFamilies(c.at(at), p.Cluster, fmt.Sprintf("node %q", n.Name), n.IP.IsValid() || n.Ignore, c.hasIPv6(&n) || n.Ignore)
		}
		if p.CatchAll && !p.Ignore {
			c.ofFamilies(c.at(path), p.Cluster, about, p.Range.IsValid(), p.Range6.IsValid())
		}
	}
	before := len(c.errs)
	for _, n := range added {
		at := n.Origin()
		if _, ok := seen[n.Pool]; !ok {
			c.errs = append(c.errs, &mistake.Error{Origin: at, Msg: fmt.Sprintf("node %q: unknown pool %q", n.Name, n.Pool), Hint: mistake.Hint(n.Pool, keys(seen), "declare it under pools:")})
		}
		c.node("", at, n.Node, &used)
		if i := slices.IndexFunc(c.cfg.Pools, func(p pools.Pool) bool { return p.Name == n.Pool }); i >= 0 {
			c.ofFamilies(at, c.cfg.Pools[i].Cluster, fmt.Sprintf("node %q", n.Name), n.IP.IsValid() || n.Ignore, c.hasIPv6(&n.Node) || n.Ignore)
		}
	}
	for _, e := range c.errs[before:] {
		e.Added = true
	}
}

// ofFamilies checks that a node, or a catch-all pool, has addresses of the families of its
// cluster. In proxy mode another server gives them.
func (c *checker) ofFamilies(at pools.Origin, cluster, about string, ipv4, ipv6 bool) {
	i := slices.IndexFunc(c.cfg.Clusters, func(cl pools.Cluster) bool { return cl.Name == cluster })
	if i < 0 || c.proxy() {
		return
	}
	has := map[pools.IPFamilies]bool{pools.IPv4Only: ipv4, pools.IPv6Only: ipv6}
	for _, f := range c.cfg.Clusters[i].IPFamilies.All() {
		if known, ok := has[f]; ok && !known {
			c.errs = append(c.errs, &mistake.Error{
				Origin: at, Msg: fmt.Sprintf("%s has no %s address, and the Nodes of cluster %q have one (ipFamilies: %s)", about, f, cluster, c.cfg.Clusters[i].IPFamilies),
				Hint: "give the node ip and ip6, and a catch-all pool range and range6, of these families",
			})
			c.conflict(c.at(fmt.Sprintf("clusters[%d]", i)))
		}
	}
}

func (c *checker) pool(path, about string, p pools.Pool) {
	if p.Cluster != "" && !slices.Contains(c.clusters, p.Cluster) {
		c.failf(path+".cluster", mistake.Hint(p.Cluster, c.clusters, "declare it under clusters:"), "%s: unknown cluster %q", about, p.Cluster)
	}
	c.report(path+".role", about, externalhost.Role(p))
	switch {
	case p.Image == "" && p.Ignore:
	case p.Image == "":
		c.failf(path, "image: debian-12", "%s has no image", about)
	case !pools.IsImage(p.Image):
		c.failf(path+".image", "write name, name:channel or name@sha256:<12 to 64 hex digits>", "%s: %q is not an image", about, p.Image)
	}
	c.tagRefs(path+".tags", about, c.at(path), p.Tags)
	c.tagRefs(path+".delegates", about, c.at(path), p.Delegates)
	c.delegateNames(path+".delegateNames", about, p.DelegateNames)
	c.lease(path+".lease", about, p.Lease)
	if p.Broadcast != "" {
		c.report(path+".broadcast", about, oneOf("broadcast", string(p.Broadcast), string(pools.BroadcastAuto), string(pools.BroadcastAlways)))
	}
	if p.DiskChange != "" {
		c.report(path+".diskChange", about, oneOf("diskChange", string(p.DiskChange), string(pools.DiskWipe), string(pools.DiskRefuse), string(pools.DiskKeep)))
	}
	c.match(path+".match", about, p.Match)
	if !p.CatchAll && !p.Match.IsZero() {
		c.failf(path+".match", "add catchall: true, or give the match to a node", "%s: only a catch-all pool has a match", about)
	}
	if !p.CatchAll && p.Authoritative != nil {
		c.failf(path+".authoritative", "add catchall: true, or remove it: drover always has the addresses of nodes", "%s: only a catch-all pool has authoritative", about)
	}
	c.secretsForUnknown(path, about, p)
	c.poolRange(path, about, p)
}

// delegateNames refuses patterns that no name of a node fits.
func (c *checker) delegateNames(path, about string, patterns []string) {
	if patterns != nil && len(patterns) == 0 { // a list that came out empty must not allow all names
		c.failf(path, "leave delegateNames out for all names", "%s: delegateNames is empty", about)
	}
	for _, p := range patterns {
		if !c.syntax.label.MatchString(strings.ReplaceAll(p, "*", "0")) {
			c.failf(path, "delegateNames: team-a-*", "%s: no node name fits %q", about, p)
		}
	}
}

func (c *checker) poolRange(path, about string, p pools.Pool) {
	switch {
	case p.CatchAll && !p.Range.IsValid() && (p.Ignore || c.proxy() || p.Range6.IsValid()):
	case p.CatchAll && !p.Range.IsValid():
		if !c.isSet(path + ".range") {
			c.failf(path, "range: 10.28.72.10-10.28.72.250", "%s: a catch-all pool needs a range to lease from", about)
		}
	case !p.CatchAll && p.Range.IsValid():
		c.failf(path+".range", "add catchall: true, or remove the range", "%s: only a catch-all pool has a range", about)
	case p.CatchAll:
		c.leaseRange(path+".range", about, p.Range)
	}
	switch {
	case !p.Range6.IsValid():
	case !p.CatchAll:
		c.failf(path+".range6", "add catchall: true, or remove the range", "%s: only a catch-all pool has a range", about)
	default:
		c.leaseRange6(path+".range6", about, p.Range6)
	}
}

func (c *checker) leaseRange(path, about string, r pools.Range) {
	first, last := c.cfg.SubnetOf(r.First), c.cfg.SubnetOf(r.Last)
	switch {
	case !r.First.Is4():
		c.failf(path, "range6: is for IPv6", "%s: range %s is not of IPv4", about, r)
	case r.Last.Less(r.First):
		c.failf(path, "swap them", "%s: range %s ends before it starts", about, r)
	case first < 0 || first != last:
		c.failf(path, "give both ends inside one of subnets:", "%s: range %s is not inside one subnet", about, r)
		c.conflictSubnet(max(first, last))
	case number(r.Last)-number(r.First) >= MaxRange:
		c.failf(path, "make it shorter", "%s: range %s has more than %d addresses", about, r, MaxRange)
	default:
		s := c.cfg.Subnets[first]
		fail := func(a netip.Addr, subnet int) {
			if r.Contains(a) {
				c.failf(path, "start or end the range beside it", "%s: range %s holds %s, which is the network's, its broadcast, the router or this server", about, r, a)
				c.conflictSubnet(subnet)
			}
		}
		for _, a := range [...]netip.Addr{s.CIDR.Addr(), broadcast(s.CIDR), s.Router} {
			fail(a, first)
		}
		for a, subnet := range c.ownAddresses() {
			fail(a, subnet)
		}
	}
}

func number(a netip.Addr) int {
	b := a.As4()
	return int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])
}

// tagRefs checks that the tags of a list exist, and that none is listed twice. owner is
// the origin of tags without a line, such as those of the API.
func (c *checker) tagRefs(path, about string, owner pools.Origin, tags []string) {
	for i, t := range tags {
		at := owner
		if line, ok := c.lines[fmt.Sprintf("%s[%d]", path, i)]; ok {
			at = resolve.OriginOf(c.file, c.included, c.objects, line, path)
		}
		e := &mistake.Error{Origin: at}
		switch {
		case t == "all":
			e.Msg, e.Hint = about+`: tag "all" always applies`, "remove it from the list"
		case slices.Contains(tags[:i], t):
			e.Msg, e.Hint = fmt.Sprintf("%s: tag %q is listed twice", about, t), "remove one"
		case !slices.Contains(c.tags, t):
			e.Msg, e.Hint = fmt.Sprintf("%s: unknown tag %q", about, t), mistake.Hint(t, c.tags, "declare it under tags:")
		default:
			continue
		}
		c.errs = append(c.errs, e)
	}
}

// node checks one node. path is empty for a node of the API: its mistakes are reported
// at the origin at.
func (c *checker) node(path string, at pools.Origin, n pools.Node, used *firstUses) {
	about := fmt.Sprintf("node %q", n.Name)
	fail := func(field, hint, format string, args ...any) {
		o := at
		if path != "" {
			o = c.at(path + field)
		}
		c.errs = append(c.errs, &mistake.Error{Origin: o, Msg: fmt.Sprintf(format, args...), Hint: hint})
	}
	here := use{n.Name, at}
	mac, made := pools.CatchAllMAC(n.Name)
	switch first, dup := used.name[n.Name]; {
	case n.Name == "":
		fail("", "name: m1c29", "a node has no name")
	case !c.syntax.label.MatchString(n.Name):
		fail(".name", "use a-z, 0-9 and '-', 63 at most", "node name %q is not a DNS label", n.Name)
	case dup:
		fail(".name", "rename or remove one", "%s is there twice, first in %s", about, first.at.Position())
		c.conflict(first.at)
	case made && !slices.Contains(n.MACs, mac):
		fail(".name", "choose a name of your own", "node name %q is the one that unknown hardware with that MAC would get", n.Name)
	default:
		used.name[n.Name] = here
	}
	c.nodeMatch(about, n, here, used, fail)
	for i, m := range n.MACs {
		field := fmt.Sprintf(".macs[%d]", i)
		switch first, dup := used.mac[m]; {
		case m.IsZero(): // reported when it was read
			if path == "" {
				fail(field, "see the label on the machine", "%s: a MAC is all zero", about)
			}
		case m.IsVirtualRouter():
			fail(field, "see the label on the machine", "%s: MAC %s is that of a virtual router (VRRP or HSRP), which is no machine", about, m)
		case dup:
			fail(field, "a network card belongs to one node: remove it from the other", "%s: MAC %s is already that of %s", about, m, first)
			c.conflict(first.at)
		default:
			used.mac[m] = here
		}
	}
	c.nodeAddress(about, path, n, here, used, fail)
	c.nodeAddress6(about, path, n, here, used, fail)
	c.slotAndPower(about, path, n, here, used, fail)
	c.tagRefs(path+".tags", about, at, n.Tags)
	if err := leaseTime(n.Lease); err != nil {
		msg, hint := mistake.Explain(about, err)
		fail(".lease", hint, "%s", msg)
	}
	c.dhcpOptions(n.DHCPOptions, about, func(key, hint, format string, args ...any) { fail(".dhcpOptions."+key, hint, format, args...) })
}

func (c *checker) nodeAddress(about, path string, n pools.Node, here use, used *firstUses, fail func(field, hint, format string, args ...any)) {
	if !n.IP.IsValid() {
		if !n.Ignore && !c.proxy() && (path == "" || !c.isSet(path+".ip")) && !c.hasIPv6(&n) {
			fail("", "ip: 10.28.36.173", "%s has no ip", about)
		}
		return
	}
	if n.IP.Is6() {
		fail(".ip", "ip6: is for IPv6", "%s: address %s is not of IPv4", about, n.IP)
		return
	}
	i := c.cfg.SubnetOf(n.IP)
	if i < 0 && slices.ContainsFunc(c.cfg.Subnets, func(s pools.Subnet) bool { return !s.CIDR.IsValid() }) {
		return // it may be in the subnet that was reported
	}
	if i < 0 {
		fail(".ip", "declare its network under subnets:, or mend the address", "%s: address %s is in none of the subnets", about, n.IP)
		return
	}
	switch s := c.cfg.Subnets[i]; n.IP {
	case s.CIDR.Addr(), broadcast(s.CIDR):
		fail(".ip", "choose one inside", "%s: %s is the network or broadcast address of %s", about, n.IP, s.CIDR)
		c.conflictSubnet(i)
	case s.Router:
		fail(".ip", "choose another", "%s: %s is the router of %s", about, n.IP, s.CIDR)
		c.conflictSubnet(i)
	default:
		if !c.notOwn(n.IP, func() { fail(".ip", "choose another", "%s: %s is this server's own address", about, n.IP) }) {
			c.notInfrastructure(path, ".ip", about, n.IP, fail)
		}
	}
	if first, dup := used.ip[n.IP]; dup {
		fail(".ip", "give each node its own", "%s: address %s is already that of %s", about, n.IP, first)
		c.conflict(first.at)
		return
	}
	used.ip[n.IP] = here
}
