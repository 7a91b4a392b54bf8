package config

import (
	"fmt"

	"drover/pools"
	"drover/pools/config/match"
	"drover/pools/config/mistake"
)

// reporter reports a mistake in a field of the value that is being checked.
type reporter func(field, hint, format string, args ...any)

// match checks the values of a match or of the conditions of a loader rule.
func (c *checker) match(path, about string, m pools.Match) {
	match.Kind(m, func(field string, err error) { c.report(path+"."+field, about, err) })
}

// nodeMatch checks the identity of a node: MACs, a client identifier, or the port
// that a relay agent sends.
func (c *checker) nodeMatch(about string, n pools.Node, here use, used *firstUses, fail reporter) {
	m := n.Match
	if len(n.MACs) == 0 && m.IsZero() {
		fail("", `macs: ["52:54:00:12:34:56"]`, "%s has no macs", about)
		return
	}
	err := match.Node(m)
	if err == nil {
		err = match.WithMACs(m, n.MACs)
	}
	if err != nil {
		msg, hint := mistake.Explain(about, err)
		fail(".match", hint, "%s", msg)
		return
	}
	if len(n.MACs) > 0 {
		return
	}
	key := match.IdentityOf(m)
	if first, dup := used.id[key]; dup {
		fail(".match", "one port, one client identifier: one node", "%s: match is already that of %s", about, first)
		c.conflict(first.at)
		return
	}
	used.id[key] = here
}

// reachable checks that no earlier catch-all pool takes all machines of the catch-all
// pool with index i.
func (c *checker) reachable(i int) {
	p := c.cfg.Pools[i]
	if !p.CatchAll {
		return
	}
	for j, first := range c.cfg.Pools[:i] {
		if !first.CatchAll || !match.Covers(first.Match, p.Match) {
			continue
		}
		if network := c.network(first); network == "" || network == c.network(p) {
			c.failf(fmt.Sprintf("pools[%d].catchall", i), "give the first one a match, or put it behind", "pool %q: no machine lands here, catch-all pool %q in %s takes them all",
				p.Name, first.Name, c.at(fmt.Sprintf("pools[%d].catchall", j)).Position())
			c.conflict(c.at(fmt.Sprintf("pools[%d]", j)))
			return
		}
	}
}

// network returns the name of the network from which a catch-all pool takes machines;
// "" for all.
func (c *checker) network(p pools.Pool) string {
	i := c.cfg.SubnetOf(p.Range.First)
	if i < 0 {
		i = c.cfg.SubnetOf(p.Range6.First)
	}
	if i < 0 {
		return ""
	}
	if name := c.cfg.Subnets[i].Network; name != "" {
		return "network " + name
	}
	return c.cfg.Subnets[i].CIDR.String()
}
