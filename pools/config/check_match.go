package config

import (
	"fmt"
	"strings"

	"drover/pools"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// reporter reports a mistake in a field of the value that is being checked.
type reporter func(field, hint, format string, args ...any)

// match checks the values of a match or of the conditions of a loader rule.
func (c *checker) match(path, about string, m pools.Match, fail reporter) {
	for _, f := range matchTexts(m) {
		if len(f.value) > 3*255 {
			fail("."+f.name, "an option has 255 bytes at most", "%s: %s has %d characters", about, f.name, len(f.value))
			continue
		}
		if _, err := resolve.Octets(f.value); err != nil {
			c.report(path+"."+f.name, about+": "+f.name, err)
		}
	}
	if strings.Trim(strings.ToLower(m.UUID), "0123456789abcdef-*") != "" || len(m.UUID) > 2*36 {
		fail(".uuid", "write 4c4c4544-0034-4210-8035-b4c04f4d3132, or parts of it with *", "%s: %q is not a UUID", about, m.UUID)
	} else if m.UUID != "" && !strings.Contains(m.UUID, "*") {
		_, err := resolve.ParseUUID(m.UUID)
		c.report(path+".uuid", about, err)
	}
	if m.Serial != "" {
		_, err := resolve.ParseSerial(m.Serial)
		c.report(path+".serial", about, err)
	}
	if m.Firmware != "" {
		if _, err := pools.ParseFirmware(string(m.Firmware)); err != nil {
			fail(".firmware", mistake.Hint(string(m.Firmware), names(pools.Firmwares), ""), "%s: unknown firmware %q", about, m.Firmware)
		}
	}
}

func names(list []pools.Firmware) []string {
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = string(f)
	}
	return out
}

// matchText is one of the texts of a Match.
type matchText struct{ name, value string }

func matchTexts(m pools.Match) []matchText {
	return []matchText{
		{"clientID", m.ClientID}, {"circuitID", m.CircuitID}, {"remoteID", m.RemoteID},
		{"subscriberID", m.SubscriberID}, {"class", m.Class}, {"userClass", m.UserClass},
	}
}

// identity is the identity of a node without MACs, as bytes: its client identifier, its
// UUID, its serial number, or the circuit, remote and subscriber identifiers of its relay
// agent.
type identity [6]string

func identityOf(m pools.Match) (id identity) {
	uuid, _ := resolve.ParseUUID(m.UUID)
	serial, _ := resolve.ParseSerial(m.Serial)
	switch {
	case m.ClientID != "":
	case uuid != "":
		return identity{4: uuid}
	case serial != "":
		return identity{5: serial}
	}
	texts := []string{m.ClientID, m.CircuitID, m.RemoteID, m.SubscriberID}
	if m.ClientID != "" {
		texts = texts[:1]
	}
	for i, s := range texts {
		id[i], _ = resolve.Octets(s)
	}
	return id
}

// nodeMatch checks the identity of a node: MACs, a client identifier, or the port
// that a relay agent sends. Its values have no wildcards: they are keys of an index.
func (c *checker) nodeMatch(about string, n pools.Node, here use, used *firstUses, fail reporter) {
	m := n.Match
	if len(n.MACs) == 0 && m.IsZero() {
		fail("", `macs: ["52:54:00:12:34:56"]`, "%s has no macs", about)
		return
	}
	for _, f := range matchTexts(m) {
		if strings.Contains(f.value, "*") {
			fail(".match", "write it in full; a * itself is hex:2a", "%s: %s %q has a *: a node is known by whole values", about, f.name, f.value)
			return
		}
		if _, err := resolve.Octets(f.value); err != nil {
			fail(".match", "write hex:0a0b or hex:0a:0b", "%s: %s: %q is not bytes in hex", about, f.name, f.value)
			return
		}
	}
	for text, parse := range map[string]func(string) (string, error){m.UUID: resolve.ParseUUID, m.Serial: resolve.ParseSerial} {
		if _, err := parse(text); text != "" && err != nil {
			msg, hint := mistake.Explain(about, err)
			fail(".match", hint, "%s", msg)
			return
		}
	}
	if m.Class != "" || m.UserClass != "" || m.Firmware != "" || !m.Arch.IsZero() {
		fail(".match", "for a kind of machine use the match of a catch-all pool", "%s: match names a kind of machine; a node is one machine", about)
		return
	}
	if len(n.MACs) > 0 {
		return
	}
	key := identityOf(m)
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
		if !first.CatchAll || !first.Match.IsZero() && first.Match != p.Match {
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
