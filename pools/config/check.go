package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/config/access"
	"drover/pools/config/defaults"
	"drover/pools/config/externalhost"
	"drover/pools/config/listen"
	"drover/pools/config/mistake"
	"drover/pools/config/settings"
	"drover/pools/option"
	"drover/pools/resolve"
)

// checker checks the values of a decoded config. It continues after each mistake.
type checker struct {
	cfg      *pools.Config
	lines    map[string]int
	file     string
	included []string
	objects  []string
	syntax   *syntax
	settings *settings.Checker
	errs     mistake.Errors

	tags     []string // names of all tags
	clusters []string

	infrastructure map[netip.Addr]string // nil before it is needed
}

func newChecker(c *resolve.Checked, errs mistake.Errors) *checker {
	return &checker{cfg: &c.Config, lines: c.Lines, file: c.Source, included: c.Included, objects: c.Objects, syntax: newSyntax(), settings: settings.New(), errs: errs}
}

// all checks everything but the chassis.
func (c *checker) all(added []pools.PoolNode) {
	c.defaults()
	c.server()
	c.subnets()
	c.clusterList()
	c.tagList()
	c.pools(added)
}

// at returns the origin of the value of a path. For a value that was not set, that is
// the line of the nearest value around it.
func (c *checker) at(path string) pools.Origin {
	at := path
	for c.lines[at] == 0 && at != "" {
		at = at[:max(0, strings.LastIndexAny(at, ".["))]
	}
	return resolve.OriginOf(c.file, c.included, c.objects, c.lines[at], path)
}

// isSet reports whether the config file has a value at path. An invalid one has been
// reported already.
func (c *checker) isSet(path string) bool { return c.lines[path] != 0 }

func (c *checker) failf(path, hint, format string, args ...any) {
	c.errs = append(c.errs, &mistake.Error{Origin: c.at(path), Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// conflict names the other place of the mistake that was added last.
func (c *checker) conflict(with pools.Origin) { c.errs[len(c.errs)-1].Other = with }

// report adds err, unless it is nil, as a mistake at path; about begins its text.
func (c *checker) report(path, about string, err error) {
	if err != nil {
		msg, hint := mistake.Explain(about, err)
		c.failf(path, hint, "%s", msg)
	}
}

// defaults sets the defaults of values that the file does not set.
func (c *checker) defaults() {
	s := &c.cfg.Server
	defaults.Set(&s.DHCP, pools.DHCPFull)
	defaults.Set(&s.RouterAdvertisements, pools.RAEmpty)
	defaults.Set(&s.HTTP, ":80")
	defaults.Set(&s.TFTP, ":69")
	defaults.Set(&s.API, "127.0.0.1:8443")
	defaults.Set(&s.MaxConcurrentImages, 64)
	defaults.Set(&s.Grace, pools.Duration(30*time.Second))
	setRetire(s)
	setBrake(&s.Brake)
	access.SetDefaults(s)
	for i := range c.cfg.Chassis {
		ch := &c.cfg.Chassis[i]
		defaults.Set(&ch.User, "Administrator")
		defaults.Set(&ch.Via, pools.ViaSSH)
		defaults.Set(&ch.NameTemplate, pools.DefaultNodeName)
	}
	for i := range c.cfg.Subnets {
		defaults.Set(&c.cfg.Subnets[i].Lease, pools.Duration(12*time.Hour))
	}
	for i := range c.cfg.Clusters {
		cl := &c.cfg.Clusters[i]
		c.hostedDefaults(cl)
		externalhost.SetDefaults(cl)
		t := &cl.Token
		defaults.Set(&t.Mode, pools.PerBoot)
		defaults.Set(&cl.Approver, pools.ByDrover)
		defaults.Set(&cl.Drain.Timeout, pools.Duration(5*time.Minute))
		if t.Mode == pools.Shared {
			defaults.Set(&t.TTL, pools.Duration(24*time.Hour))
			defaults.Set(&t.Rotate, t.TTL/2)
		}
		defaults.Set(&t.TTL, pools.Duration(10*time.Minute))
		if cl.SecretRef != (pools.SecretRef{}) && cl.Name != "" {
			// The name that Cluster API and its provider Kamaji use.
			defaults.Set(&cl.SecretRef.Name, cl.Name+"-kubeconfig")
		}
	}
}

func (c *checker) server() {
	s := &c.cfg.Server
	c.report("server.http", "server.http", listen.HostPort(s.HTTP, true))
	c.report("server.tftp", "server.tftp", listen.HostPort(s.TFTP, true))
	c.report("server.api", "server.api", listen.HostPort(s.API, true))
	c.report("server.routerAdvertisements", "server.routerAdvertisements", oneOf("mode", string(s.RouterAdvertisements), string(pools.RAEmpty), string(pools.RAManaged), string(pools.RAOff)))
	if s.RouterAdvertisements == pools.RAManaged && !c.cfg.HasIPv6() {
		c.failf("server.routerAdvertisements", "add the IPv6 network to subnets, or write empty", "server.routerAdvertisements: managed sends hosts to DHCPv6, and no subnet is of IPv6")
	}
	c.report("server.dhcp", "server.dhcp", oneOf("mode", string(s.DHCP), string(pools.DHCPFull), string(pools.DHCPProxy), string(pools.DHCPOff)))
	if len(s.Interfaces) == 0 && s.DHCP != pools.DHCPOff && !c.isSet("server.interfaces") {
		c.failf("server", "name the network card that nodes boot from: interfaces: [eth1]", "server.interfaces is empty")
	}
	if len(s.Interfaces) == 0 && s.DHCP == pools.DHCPOff && !s.Address.IsValid() && !c.isSet("server.address") {
		c.failf("server", "address: 10.28.0.2", "server.address is not set, and there are no interfaces to take it from")
	}
	for i, name := range s.Interfaces {
		if slices.Contains(s.Interfaces[:i], name) {
			c.failf(fmt.Sprintf("server.interfaces[%d]", i), "remove one", "server.interfaces: %q is listed twice", name)
		}
		if len(name) == 0 || len(name) > 15 {
			c.failf(fmt.Sprintf("server.interfaces[%d]", i), "see ip -brief link", "server.interfaces: %q is not the name of a network interface (1 to 15 characters)", name)
		}
	}
	if a := s.Address; a.Is6() && (!isHost6(a) || a.IsLinkLocalUnicast()) {
		c.failf("server.address", "write the address that nodes reach this server at", "server.address %s is not the IPv6 address of a host", a)
	} else if a.Is6() && !c.cfg.HasIPv6() {
		c.failf("server.address", "write the IPv4 address that nodes boot from", "server.address %s is of IPv6, and no subnet is", a)
	}
	if !listen.IsLoopback(s.API) && s.APITLS == nil {
		c.failf("server.api", "set apiTLS: {selfSigned: true} or {cert, key}, or listen on 127.0.0.1 and reach it by SSH", "server.api %q is reachable from other hosts without TLS: its bearer token would cross the network in clear", s.API)
	}
	if ns := s.Objects.Namespace; c.isSet("server.objects") && !c.syntax.label.MatchString(ns) {
		c.failf("server.objects", "objects: {namespace: drover}", "server.objects: %q cannot be the name of a namespace", ns)
	}
	if s.Traces != "" {
		c.report("server.traces", "server.traces", collectorURL(s.Traces))
	}
	access.Check(s, c.failf)
	c.nodeFacing(s)
	c.clients()
}

// nodeFacing checks the settings of the node-facing listeners.
func (c *checker) nodeFacing(s *pools.Server) {
	if s.HTTPS != "" {
		c.report("server.https", "server.https", listen.HostPort(s.HTTPS, true))
	}
	if s.Netconsole != "" {
		c.report("server.netconsole", "server.netconsole", listen.HostPort(s.Netconsole, true))
	}
	listen.Shared(s, func(first, second listen.Listener) {
		c.failf(second.Name, "give one of them another port, or an address of its own", "%s %q would have the port of %s %q", second.Name, second.Address, first.Name, first.Address)
		c.conflict(c.at(first.Name))
	})
	switch t := s.NodeTLS; {
	case t == nil:
	case t.Cert == "" || t.Key == "":
		c.failf("server.nodeTLS", "nodeTLS: {cert: node.crt, key: node.key}, or leave it out for a key of drover's own", "server.nodeTLS needs both cert and key")
	case s.HTTPS == "":
		c.failf("server.nodeTLS", `https: ":443"`, "server.nodeTLS has no effect without server.https")
	}
	if n := s.MaxConcurrentImages; n < 1 || n > 65536 {
		c.failf("server.maxConcurrentImages", "64 suits most networks", "server.maxConcurrentImages %d is not from 1 to 65536", n)
	}
	c.also()
	c.retire()
	c.brake()
	if g := time.Duration(s.Grace); g < time.Second || g > time.Hour {
		c.failf("server.grace", "30s, or up to 1h for long transfers", "server.grace %s is not from 1s to 1h", s.Grace)
	}
}

// proxy reports whether another server gives addresses. The config need not have them
// then.
func (c *checker) proxy() bool { return c.cfg.Server.DHCP == pools.DHCPProxy }

func (c *checker) subnets() {
	if len(c.cfg.Subnets) == 0 && !c.isSet("subnets[0]") && !c.proxy() && c.cfg.Server.Objects.Namespace == "" {
		c.failf("subnets", "subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1}]", "no subnets")
	}
	for i, s := range c.cfg.Subnets {
		path := fmt.Sprintf("subnets[%d]", i)
		about := "subnet " + s.CIDR.String()
		switch {
		case !s.CIDR.IsValid():
			if !c.isSet(path + ".cidr") {
				c.failf(path, "cidr: 10.28.0.0/16", "%s has no cidr", path)
			}
			continue
		case s.CIDR != s.CIDR.Masked():
			c.failf(path+".cidr", fmt.Sprintf("write %s", s.CIDR.Masked()), "%s has host bits set", about)
		case s.Is6():
			c.subnet6(path, about, &s)
		}
		if !s.Is6() {
			c.subnet4(path, about, &s)
		}
		if s.Domain != "" && !option.IsDomain(s.Domain) {
			c.failf(path+".domain", "domain: example.org", "%s: %q is not a domain name", about, s.Domain)
		}
		if s.Network != "" && !c.syntax.qualified.MatchString(s.Network) {
			c.failf(path+".network", "use letters, digits, '-', '_' and '.'", "%s: %q cannot be the name of a network", about, s.Network)
		}
		if s.RapidCommit && !s.Is6() {
			c.failf(path+".rapidCommit", "remove it, or move it to the IPv6 subnet", "%s: rapidCommit is for IPv6 subnets", about)
		}
		if s.SLAAC && (!s.Is6() || s.CIDR.Bits() != 64) {
			c.failf(path+".slaac", "remove it, or move it to an IPv6 subnet of 64 bits", "%s: machines make addresses of IPv6 prefixes of 64 bits alone (slaac)", about)
		}
		c.lease(path+".lease", about, s.Lease)
		c.bootAddress(i, about)
		c.relays(i, about)
		for j, other := range c.cfg.Subnets[:i] {
			if other.CIDR.IsValid() && other.CIDR.Overlaps(s.CIDR) {
				c.failf(path+".cidr", "a machine must be in one subnet only", "%s overlaps subnet %s in %s", about, other.CIDR, c.at(fmt.Sprintf("subnets[%d].cidr", j)).Position())
				c.conflictSubnet(j)
			}
		}
	}
}

// leaseTime checks a lease time. Shorter ones would make nodes renew all the time. Longer
// ones do not fit in the signed 32 bits that some clients use.
func leaseTime(d pools.Duration) error {
	if d != 0 && d != pools.Infinite && (d.D() < time.Minute || d.D() > 10*365*24*time.Hour) {
		return pools.Hint("12h suits fixed nodes, 5m a catch-all", "lease %s is not from 1m to ten years", d)
	}
	return nil
}

// lease checks the lease time of a subnet or pool.
func (c *checker) lease(path, about string, d pools.Duration) {
	c.report(path, about, leaseTime(d))
}

func (c *checker) clusterList() {
	seen := map[string]string{}
	for i, cl := range c.cfg.Clusters {
		path := fmt.Sprintf("clusters[%d]", i)
		about := fmt.Sprintf("cluster %q", cl.Name)
		c.name(path, "cluster", cl.Name, seen)
		c.clusters = append(c.clusters, cl.Name)
		c.credentials(path, about, cl)
		c.controlPlane(path, about, cl)
		c.hosts(i)
		if cl.Endpoint != "" {
			c.report(path+".endpoint", about+": endpoint", listen.HostPort(cl.Endpoint, false))
		}
		if cl.IPFamilies != "" {
			c.report(path+".ipFamilies", about, oneOf("ipFamilies", string(cl.IPFamilies),
				string(pools.IPv4Only), string(pools.IPv6Only), string(pools.DualIPv4), string(pools.DualIPv6)))
		}
		c.tokenPolicy(path, about, cl)
	}
	c.tenants()
}

func (c *checker) tokenPolicy(path, about string, cl pools.Cluster) {
	t := cl.Token
	c.report(path+".token.mode", about, oneOf("token mode", string(t.Mode), string(pools.PerBoot), string(pools.Shared)))
	c.report(path+".approver", about, oneOf("approver", string(cl.Approver), string(pools.ByDrover), string(pools.ByCluster)))
	if cl.Serving && cl.Approver == pools.ByCluster {
		c.failf(path+".serving", "remove approver: cluster, or serving: true", "%s: serving: true has drover approve serving certificates, but its approver is the cluster", about)
	}
	if t.Mode == pools.Shared {
		if d := t.TTL.D(); d < 10*time.Minute || d > 7*24*time.Hour {
			c.failf(path+".token.ttl", "24h lets a node boot that got its token yesterday", "%s: ttl %s of a shared token is not from 10m to 168h", about, t.TTL)
		} else if r := t.Rotate.D(); r < time.Minute || r > d/2 {
			c.failf(path+".token.rotate", "12h for a ttl of 24h", "%s: rotate %s is not from 1m to half of the ttl %s, so that the last two tokens are valid", about, t.Rotate, t.TTL)
		}
		return
	}
	if d := t.TTL.D(); d < 2*time.Minute || d > 24*time.Hour {
		c.failf(path+".token.ttl", "10m is enough for one boot", "%s: token ttl %s is not from 2m to 24h", about, t.TTL)
	}
	if t.Rotate != 0 {
		c.failf(path+".token.rotate", "mode: shared, or remove it", "%s: rotate is for shared tokens; one for one boot is not rotated", about)
	}
}

// name checks the name of a cluster, pool or chassis, and that no other has it.
func (c *checker) name(path, what, name string, seen map[string]string) {
	switch {
	case name == "":
		c.failf(path, "name: ...", "%s (%s) has no name", what, path)
		return
	case !c.syntax.label.MatchString(name):
		c.failf(path+".name", "use a-z, 0-9 and '-', 63 at most", "%s name %q is not a DNS label", what, name)
	}
	if first, dup := seen[name]; dup {
		c.failf(path+".name", "rename or remove one", "%s %q is there twice, first in %s", what, name, c.at(first).Position())
		c.conflict(c.at(first))
		return
	}
	seen[name] = path
}

// broadcast returns the last address of a prefix.
func broadcast(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
