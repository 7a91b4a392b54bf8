package config

import (
	"fmt"
	"net/netip"
	"slices"

	"drover/pools"
)

// maxAlso bounds server.also: three servers may have one list. It is on each kernel command line.
const maxAlso = 3

// also checks server.also. Ranges are for one server: which machine leases an address is known
// to the server that gave it alone.
func (c *checker) also() {
	s := &c.cfg.Server
	if len(s.Also) > maxAlso {
		c.failf("server.also", "two servers carry the loss of one", "server.also has %d servers, more than %d", len(s.Also), maxAlso)
		return
	}
	var seen []netip.AddrPort
	for i, text := range s.Also {
		path := fmt.Sprintf("server.also[%d]", i)
		a, err := pools.ParseServerURL(text)
		switch {
		case err != nil:
			c.report(path, "server.also", err)
		case slices.Contains(seen, a):
			c.failf(path, "remove one", "server.also: %s is listed twice", text)
		}
		seen = append(seen, a)
	}
	if len(s.Also) == 0 || s.DHCP != pools.DHCPFull {
		return
	}
	for i, p := range c.cfg.Pools {
		c.sharedRange(fmt.Sprintf("pools[%d].range", i), p.Name, p.Range)
		c.sharedRange(fmt.Sprintf("pools[%d].range6", i), p.Name, p.Range6)
	}
}

func (c *checker) sharedRange(path, pool string, r pools.Range) {
	if r.IsValid() {
		c.failf(path, "declare its machines with an ip each, or remove server.also, or let another server give addresses (dhcp: proxy)",
			"pool %q leases from a range, and there is another server (server.also): the two would give one address to two machines", pool)
		c.conflict(c.at("server.also"))
	}
}
