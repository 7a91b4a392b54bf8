package resolve

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/option"
)

// Resolve returns the plan of a machine. It returns nil when the machine gets no
// answer; [Farm.WhyNot] returns the reason. It is safe for concurrent use.
//
// A machine is found by its MAC. Nodes without MACs are found by their client
// identifier, their UUID or serial number, or by the switch port that their relay agent
// sends. Any other machine is
// unknown and belongs to the catch-all pool that it has a lease of, else to the first
// one that takes it. A node with MACs and a match must fulfil both in a query of DHCP.
func (f *Farm) Resolve(q Query) *Plan { return f.ResolveLeased(q, pools.Lease{}) }

// ResolveLeased is [Farm.Resolve] for a machine that has a lease; the zero Lease is
// none. When no node has the MAC of the query, the node of the lease is used if the query
// does not contain the client's port, see [Query.Recalls], and the pool of the lease if
// it is a catch-all pool. In a query of DHCP that lease must be active.
func (f *Farm) ResolveLeased(q Query, l pools.Lease) *Plan {
	e, matched := f.find(&q, &l)
	if e == nil || f.refusal(e, &q) != "" {
		return nil
	}
	if e.retired {
		return f.planRetired(e, q, matched, &l)
	}
	return f.plan(e, q, matched, &l)
}

// WhyNot returns the reason why [Farm.Resolve] returns no plan, as text; "" when it
// returns one.
func (f *Farm) WhyNot(q Query) string { return f.WhyNotLeased(q, pools.Lease{}) }

// WhyNotLeased is [Farm.WhyNot] for [Farm.ResolveLeased].
func (f *Farm) WhyNotLeased(q Query, l pools.Lease) string {
	e, _ := f.find(&q, &l)
	switch {
	case e != nil:
		return f.refusal(e, &q)
	case len(f.catchalls) == 0:
		return fmt.Sprintf("no node has MAC %s, and there is no catch-all pool", q.MAC)
	case q.Relayed && f.linkSubnet(q.Link) < 0:
		return fmt.Sprintf("no node has MAC %s, and the network of %s is in no subnet: declare it, or name the relay agent in subnets[].relays", q.MAC, q.Link)
	}
	return fmt.Sprintf("no node has MAC %s, and no catch-all pool takes it where it asks from", q.MAC)
}

// find returns the entry of the client, and the options that identified it if not its
// MAC did. It returns nil when no entry fits.
func (f *Farm) find(q *Query, l *pools.Lease) (*entry, string) {
	if q.MAC.IsZero() {
		return nil, ""
	}
	if e := f.byMAC[q.MAC]; e != nil {
		return e, ""
	}
	if q.byDHCP() {
		if e, by := f.byIdentity.find(q); e != nil && e.matcher.matches(q) {
			return e, by
		}
	}
	if e := f.byName[l.Node]; e != nil && len(e.MACs) == 0 && (q.Recalls() || f.remembers(e, q)) {
		return e, "lease"
	}
	if e, by := f.retiredFor(q, l); e != nil {
		return e, by
	}
	return f.catchall(q, l), ""
}

// remembers reports whether the client may be a later program of the boot of a node that
// is known by option 97, which only boot programs send.
func (f *Farm) remembers(e *entry, q *Query) bool {
	return e.byMachine() && q.UUID == "" && e.matcher.located(q) && f.sameNetwork(q.Link, e.subnet)
}

// byMachine reports whether a node without MACs is known by option 97.
func (e *entry) byMachine() bool {
	return e.Match.ClientID == "" && (e.Match.UUID != "" || e.Match.Serial != "")
}

// byDHCP reports whether the query has the fields that only DHCP knows.
func (q *Query) byDHCP() bool { return q.Link.IsValid() }

// Recalls reports whether a lease may replace fields that the query does not have.
// HTTP and TFTP know only the MAC. A renewal may bypass the relay agent, which would
// add the switch port.
func (q *Query) Recalls() bool { return !q.byDHCP() || q.Renewing }

// refusal returns the reason why a machine that was found gets no answer; "" when it
// gets one.
func (f *Farm) refusal(e *entry, q *Query) string {
	if e.retired {
		return f.refuseRetired(e, q)
	}
	pool := &f.Config.Pools[e.pool]
	switch {
	case pool.Ignore:
		return fmt.Sprintf("pool %q is to be ignored (%s)", pool.Name, f.at(f.poolPath(e.pool)+".ignore").Position())
	case e.ignore:
		return fmt.Sprintf("node %q is to be ignored (%s)", e.Name, e.Source.Position())
	case !q.byDHCP() || e.catchall:
		return ""
	case e.matcher != nil && len(e.macs) > 0 && !e.matcher.admits(q):
		return fmt.Sprintf("node %q has MAC %s, but what it is to match beside does not fit (%s)", e.Name, q.MAC, e.Source.Position())
	case !f.sameNetwork(q.Link, e.subnetOf(q.IPv6)):
		return fmt.Sprintf("node %q asks from %s, but its address %s is in %s (if both are on one wire, give them the same network: in subnets)",
			e.Name, f.Config.Subnets[f.linkSubnet(q.Link)].CIDR, e.own(q.IPv6, q.MAC), f.Config.Subnets[e.subnetOf(q.IPv6)].CIDR)
	case !q.IPv6 && !e.address.IsValid() && (e.IP6.IsValid() || e.slaac.IsValid()):
		return fmt.Sprintf("node %q has IPv6 only (%s)", e.Name, e.Source.Position())
	}
	return ""
}

// LacksIPv6 returns the reason why a plan for IPv6 is no answer to a boot program: its node has
// an IPv4 address alone. It is "" for other plans, and in proxy mode, where another server can
// give the node an address. DHCPv6 tells such a node that there is none.
func (p *Plan) LacksIPv6() string {
	e := p.entry
	if e == nil || !p.query.IPv6 || p.CatchAll || !e.address.IsValid() || e.IP6.IsValid() || e.slaac.IsValid() || p.farm.Config.Server.DHCP == pools.DHCPProxy {
		return ""
	}
	return fmt.Sprintf("node %q has IPv4 only (%s)", e.Name, e.Source.Position())
}

// OneNetwork reports whether a network link, the address of a relay agent or of an interface,
// and an address are in subnets of one network.
func (f *Farm) OneNetwork(link, addr netip.Addr) bool {
	subnet := f.Config.SubnetOf(addr)
	return subnet >= 0 && f.linkSubnet(link) >= 0 && f.sameNetwork(link, subnet)
}

// sameNetwork reports whether link is on the network segment of a subnet. A link that
// no subnet holds or lists counts as the same network: a relay agent in front of a
// declared node may have such an address.
func (f *Farm) sameNetwork(link netip.Addr, subnet int) bool {
	at := f.linkSubnet(link)
	if at < 0 || subnet < 0 || at == subnet {
		return true
	}
	network := f.Config.Subnets[at].Network
	return network != "" && network == f.Config.Subnets[subnet].Network
}

func (f *Farm) plan(e *entry, q Query, matched string, l *pools.Lease) *Plan {
	pool := &f.Config.Pools[e.pool]
	p := &Plan{
		Node: e.name, MAC: q.MAC, MACs: e.macs, Matched: matched,
		Pool: pool.Name, CatchAll: e.catchall, Cluster: pool.Cluster, Image: pool.Image,
		Address: e.own(q.IPv6, q.MAC), Address6: e.own(true, q.MAC), Broadcast: pool.Broadcast == pools.BroadcastAlways, DiskChange: pool.DiskChange,
		Options: e.options, Options6: e.options6, Settings: e.profile.Settings,
		Advertised: f.advertisedTo(e, &q, l),
		farm:       f, entry: e, query: q,
	}
	if pool.Role == pools.RoleGateway {
		p.Cluster, p.Gateway = "", pool.Cluster
	}
	if p.CatchAll {
		p.Node, p.Range, p.Range6 = pools.CatchAllName(q.MAC), pool.Range, pool.Range6
		if q.IPv6 {
			p.Range = p.Range6
		}
		p.Yields = pool.Authoritative != nil && !*pool.Authoritative
	}
	if len(p.MACs) == 0 {
		p.MACs = []pools.MAC{q.MAC}
	}
	if i := f.subnetFor(e, &q); i >= 0 {
		p.Subnet = f.Config.Subnets[i]
	}
	p.Lease = p.Subnet.Lease
	if pool.Lease != 0 {
		p.Lease = pool.Lease
	}
	if e.Lease != 0 {
		p.Lease = e.Lease
	}
	p.Boot, p.loader = p.Advertised.boot(e.profile, &q)
	return p
}

// subnetFor returns the index of the subnet of a machine's address, or -1. In proxy
// mode, where another server gives the address, it is the client's subnet, or the only
// one of the config.
func (f *Farm) subnetFor(e *entry, q *Query) int {
	if own := e.subnetOf(q.IPv6); own >= 0 {
		return own
	}
	if i := f.linkSubnet(q.Link); i >= 0 {
		return i
	}
	return f.onlySubnet(q.IPv6)
}

// SubnetOf returns the subnet of an address; false when a machine on the client's
// network cannot use the address.
func (p *Plan) SubnetOf(a netip.Addr) (pools.Subnet, bool) {
	if p.Subnet.CIDR.IsValid() && p.Subnet.CIDR.Contains(a) {
		return p.Subnet, true
	}
	if p.farm == nil {
		return pools.Subnet{}, false
	}
	i := p.farm.Config.SubnetOf(a)
	if i < 0 || !p.farm.sameNetwork(p.query.Link, i) {
		return pools.Subnet{}, false
	}
	return p.farm.Config.Subnets[i], true
}

// Domain returns the domain of the machine when it uses the address a: DHCP option 15
// of its node or tags, else the domain of the address's subnet. It is "" when
// neither is set.
func (p *Plan) Domain(a netip.Addr) string {
	for _, o := range p.Options {
		if name := strings.Trim(string(o.Data), "."); o.Code == 15 && option.IsDomain(name) {
			return name
		}
	}
	if s, ok := p.SubnetOf(a); ok {
		return s.Domain
	}
	return p.Subnet.Domain
}

// boot returns the boot target of the client: the boot script for iPXE, the URL of a
// loader for UEFI HTTP Boot, a TFTP path for other firmware, and no file for a plain
// DHCP client. Loader rules of the tags come before the defaults. boot also returns the
// index of the rule that matches, or -1.
func (a *Advertised) boot(p *profile, q *Query) (BootTarget, int) {
	target := BootTarget{Server: a.Address}
	http := (q.Firmware.HTTP() || q.httpClass()) && !q.NoHTTP
	i := p.loaderRule(q)
	switch {
	case i >= 0:
		rule := &p.Loaders[i]
		target.File = rule.Loader
		if rule.Server.IsValid() {
			target.Server = rule.Server
		}
	case q.getsScript():
		target.File = a.URL + pools.ScriptPath + q.MAC.Dashed()
		http = false
	default:
		target.File = q.Firmware.Loader()
	}
	if http && target.File != "" && !strings.Contains(target.File, "://") {
		target.File = a.URL + pools.LoaderPath + target.File
	}
	if q.IPv6 {
		target.File = tftpURL(target)
	}
	return target, i
}

// loaderRule returns the index of the last rule that matches, or -1.
func (p *profile) loaderRule(q *Query) int {
	for i := len(p.loaders) - 1; q.Boots() && i >= 0; i-- {
		if q.NoHTTP && strings.HasPrefix(p.Loaders[i].Loader, "http") && strings.Contains(p.Loaders[i].Loader, "://") {
			continue
		}
		if m := p.loaders[i]; (!q.getsScript() || m.userClass != nil) && m.matches(q) {
			return i
		}
	}
	return -1
}

// getsScript reports whether the client is an iPXE that can fetch its boot script. One without HTTP
// gets the loader of its firmware by TFTP, which is an iPXE with HTTP.
func (q *Query) getsScript() bool { return q.IPXE && (!q.NoHTTP || q.Firmware.Loader() == "") }

// Why returns the origin of each value of the plan.
func (p *Plan) Why() Why {
	if p.Retired {
		return p.whyRetired()
	}
	f, e := p.farm, p.entry
	pool := f.poolPath(e.pool)
	why := maps.Clone(e.profile.why)
	why["pool"] = f.at(pool)
	why["image"] = f.at(pool + ".image")
	if p.Cluster != "" {
		why["cluster"] = f.at(pool + ".cluster")
	}
	if p.Gateway != "" {
		why["gateway"] = f.at(pool + ".role")
	}
	if i := f.subnetFor(e, &p.query); i >= 0 {
		why["subnet"] = f.at(f.subnetPath(i))
		why["lease"] = f.at(f.subnetPath(i) + ".lease")
	}
	if f.Config.Pools[e.pool].Lease != 0 {
		why["lease"] = f.at(pool + ".lease")
	}
	if e.Lease != 0 {
		why["lease"] = e.Source
		if e.path != "" {
			why["lease"] = f.at(e.path + ".lease")
		}
	}
	if p.Broadcast {
		why["broadcast"] = f.at(pool + ".broadcast")
	}
	if p.DiskChange != "" {
		why["diskChange"] = f.at(pool + ".diskChange")
	}
	if p.Yields {
		why["authoritative"] = f.at(pool + ".authoritative")
	}
	f.whyNode(p, why)
	f.whyBoot(p, why)
	p.whyNext(why)
	return why
}

// whyNode adds the origins of name and address.
func (f *Farm) whyNode(p *Plan, why Why) {
	e := p.entry
	switch {
	case p.CatchAll:
		why["node"] = pools.Origin{Path: "made from the MAC"}
		why["macs"] = pools.Origin{Path: "the MAC that asks"}
		why["range"] = f.at(f.poolPath(e.pool) + ".range")
	case e.path == "":
		why["node"], why["macs"], why["address"] = e.Source, e.Source, e.Source
	default:
		why["node"], why["macs"], why["address"] = f.at(e.path+".name"), f.at(e.path+".macs"), f.at(e.path+".ip")
	}
	f.why6(p, why)
	if p.Matched != "" {
		why["macs"] = pools.Origin{Path: "the MAC that asks, known by its " + p.Matched}
	}
	for _, key := range slices.Sorted(maps.Keys(e.DHCPOptions)) {
		field := option.Field(key)
		why[field] = e.Source
		if e.path != "" {
			why[field] = f.at(e.path + ".dhcpOptions." + key)
		}
	}
}

// whyBoot adds the origins of the loader and its server.
func (f *Farm) whyBoot(p *Plan, why Why) {
	why["boot.server"] = p.Advertised.from
	switch {
	case p.loader >= 0:
		rule := why[fmt.Sprintf("loaders[%d]", p.loader)]
		why["boot.file"] = rule
		if p.Loaders[p.loader].Server.IsValid() {
			why["boot.server"] = rule
		}
	case p.query.getsScript():
		why["boot.file"] = pools.Origin{Path: "boot script, for iPXE"}
	case p.Boot.File != "":
		why["boot.file"] = pools.Origin{Path: "loader for " + string(p.query.Firmware)}
	}
}
