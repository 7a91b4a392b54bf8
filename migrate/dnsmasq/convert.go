package dnsmasq

import (
	"slices"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// dnsOptions are the options of dnsmasq about DNS.
const dnsOptions = `server rev-server address local domain-needed bogus-priv filterwin2k resolv-file no-resolv no-poll strict-order
	no-hosts addn-hosts hostsdir expand-hosts cache-size no-negcache neg-ttl local-ttl max-ttl max-cache-ttl min-cache-ttl auth-ttl
	mx-host mx-target selfmx localmx srv-host txt-record ptr-record naptr-record cname host-record dynamic-host interface-name
	dns-rr caa-record synth-domain alias bogus-nxdomain ignore-address dnssec dnssec-check-unsigned dnssec-no-timecheck
	dnssec-timestamp trust-anchor proxy-dnssec conntrack dns-forward-max all-servers localise-queries rebind-domain-ok
	rebind-localhost-ok stop-dns-rebind localservice local-service edns-packet-max query-port min-port max-port port-limit add-mac
	strip-mac add-subnet strip-subnet add-cpe-id umbrella ipset nftset connmark-allowlist connmark-allowlist-enable log-queries
	auth-server auth-zone auth-soa auth-sec-servers auth-peer dns-loop-detect port dumpfile dumpmask filter-A filter-AAAA filter-rr
	no-round-robin use-stale-cache fast-dns-retry servers-file cache-rr max-tcp-connections no-ident DnsHosts resolv-conf`

// hostOptions are the options of dnsmasq about itself.
const hostOptions = `user group pid-file keep-in-foreground no-daemon log-facility log-async log-dhcp log-debug quiet-dhcp
	quiet-dhcp6 quiet-ra quiet-tftp bind-interfaces bind-dynamic listen-address
	dhcp-leasefile leasefile-ro dhcp-lease-max dhcp-script dhcp-luascript dhcp-scriptuser script-arp script-on-renewal
	leasequery enable-dbus enable-ubus clear-on-reload test version help dhcp-hostsfile dhcp-optsfile dhcp-no-override dhcp-ignore-clid no-ping
	dhcp-sequential-ip dhcp-reply-delay dhcp-client-update dhcp-fqdn dhcp-duid dhcp-ttl bootp-dynamic dhcp-alternate-port
	enable-tftp tftp-root tftp-no-fail tftp-unique-root tftp-secure tftp-lowercase tftp-max tftp-mtu tftp-no-blocksize tftp-port-range
	tftp-single-port ra-param bridge-interface shared-network dhcp-pxe-vendor conf-script`

// table returns the readers of the options that say something about machines.
func (r *Reader) table() map[string]func(directive) {
	says := func(note func(at pools.Origin, format string, args ...any), text string) func(directive) {
		return func(d directive) { note(d.at, text) }
	}
	menu := says(r.farm.Itself, "drover sends each firmware its own loader (a menu: menuTimeout of a tag)")
	return map[string]func(directive){
		"dhcp-range": r.dhcpRange, "dhcp-host": r.dhcpHost, "dhcp-option": r.dhcpOption, "dhcp-option-force": r.dhcpOption,
		"dhcp-boot": r.dhcpBoot, "dhcp-match": r.dhcpMatch, "dhcp-vendorclass": r.dhcpClass, "dhcp-userclass": r.dhcpClass,
		"dhcp-circuitid": r.relayed, "dhcp-remoteid": r.relayed, "dhcp-subscrid": r.relayed, "dhcp-mac": r.dhcpMAC,
		"tag-if": r.tagIf, "interface": func(d directive) { r.serves = append(r.serves, d) },
		"no-dhcp-interface": r.noInterface, "no-dhcpv4-interface": r.noInterface, "no-dhcpv6-interface": r.noInterface, "except-interface": r.noInterface,
		"domain": r.domainName, "dhcp-ignore": r.ignore,
		"dhcp-broadcast": r.broadcast, "dhcp-authoritative": func(d directive) {
			r.Authoritative = true
			r.farm.Itself(d.at, "drover is authoritative for its networks")
		},
		"dhcp-generate-names": says(r.farm.Itself, "drover names unknown machines after their MAC, node-525400123456 (there 52-54-00-12-34-56)"),
		"dhcp-ignore-names":   says(r.farm.Itself, "drover never takes the name that a client sends"),
		"dhcp-rapid-commit":   says(r.farm.Lost, "rapid commit over IPv4: drover has it for IPv6 subnets (rapidCommit)"),
		"enable-ra":           says(r.farm.Lost, "router advertisements (server.routerAdvertisements: managed, where no router sends them)"),
		"read-ethers":         says(r.farm.Unknown, "the machines of /etc/ethers: write its lines as MAC,ADDRESS into a file for --dhcp-hosts"),
		"pxe-service":         menu, "pxe-prompt": menu, "dhcp-name-match": r.nameMatch,
		"dhcp-proxy": says(r.farm.Lost, "the addresses of relay agents (subnets[].relays)"),
		"dhcp-relay": says(r.farm.Lost, "drover is no relay agent"),
	}
}

func (r *Reader) serve(d directive) {
	for _, name := range d.fields {
		switch {
		case name == "" || name == "lo":
		case slices.Contains(r.without, name):
			r.farm.Itself(d.at, "interface %q: dnsmasq has no DHCP there, and server.interfaces has none of it", name)
		case strings.Contains(name, "*"):
			r.farm.Lost(d.at, "interfaces %q by a pattern: name each in server.interfaces", name)
		default:
			r.farm.Serve(d.at, name)
		}
	}
}

// domainName reads domain=NAME[,NETWORK]. A domain of a part of the addresses is noted.
func (r *Reader) domainName(d directive) {
	if len(d.fields) != 1 || d.fields[0] == "#" || d.fields[0] == "" {
		r.farm.Lost(d.at, "the domain of some addresses (subnets[].domain)")
		return
	}
	r.farm.Set(&r.farm.Global, migrate.Option{At: d.at, Code: 15, Values: d.fields})
}

// noInterface reads an interface without DHCP.
func (r *Reader) noInterface(d directive) {
	r.without = append(r.without, d.fields...)
	r.farm.Itself(d.at, "drover serves the interfaces of server.interfaces alone")
}

// ignored is the value of dhcp-ignore.
type ignored struct {
	at   pools.Origin
	tags condition
}

// ignore reads dhcp-ignore. The tags may be bare, as dnsmasq had them first.
func (r *Reader) ignore(d directive) {
	i := ignored{at: d.at}
	for _, f := range d.fields {
		kind, tag, colon := strings.Cut(f, ":")
		switch {
		case !colon && f != "":
			tag = f
		case kind != "tag" && kind != "net":
			r.farm.Unknown(d.at, "want tag:TAG")
			r.farm.Close(d.at, "dhcp-ignore")
			return
		}
		i.tags = append(i.tags, tagOf(tag))
	}
	r.ignores = append(r.ignores, i)
}

// keepOut follows dhcp-ignore for machines that the config does not name.
func (r *Reader) keepOut() {
	for _, i := range r.ignores {
		switch c := r.fulfil(i.tags); {
		case c.share == all && slices.ContainsFunc(i.tags, func(tag string) bool { return slices.Contains(r.Tags, tag) }):
			r.ignored = true // for the clients of this reader
			r.farm.Itself(i.at, "unknown machines get no answer: there is no catch-all pool for them")
		case c.share == all:
			r.farm.KnownOnly()
			r.farm.Itself(i.at, "unknown machines get no answer: there is no catch-all pool")
		case c.share == none && !slices.ContainsFunc(i.tags, r.depends):
			r.farm.Taken(i.at, "pools[].nodes[].ignore", true)
		case len(c.matches) == 0:
			r.farm.Close(i.at, "dhcp-ignore=tag:"+strings.Join(i.tags, ",tag:"))
		default:
			r.used = append(r.used, c.matches...)
			for _, m := range c.matches {
				r.farm.CatchAll(migrate.CatchAll{At: i.at, Pool: pools.Pool{Name: "ignored", Match: m, Ignore: true}})
			}
			r.farm.Taken(i.at, "pools[].ignore; a catch-all pool with match (nodes are answered, whatever they send)", true)
		}
	}
}

func (r *Reader) broadcast(d directive) {
	if tags, _ := splitTags(d.fields); len(tags) > 0 && !slices.Equal(tags, r.Tags) {
		r.farm.Lost(d.at, "broadcast answers for some machines (broadcast: always of a pool)")
		return
	}
	r.always = true
	r.farm.Taken(d.at, "pools[].broadcast", "always")
}

func (r *Reader) nameMatch(d directive) {
	if len(d.fields) > 0 {
		r.send(strings.TrimPrefix(d.fields[0], "set:"), clients{})
	}
	r.farm.Lost(d.at, "what depends on the name that a client sends: drover does not trust it")
}

// Finish adds everything to the farm, once all files are read.
func (r *Reader) Finish() {
	r.settle()
	for _, d := range r.serves {
		r.serve(d)
	}
	r.keepOut()
	r.conds = r.conditions()
	for _, rg := range r.ranges {
		r.addNetwork(rg)
	}
	r.addOptions()
	r.addHosts()
	for _, rg := range r.ranges {
		r.addRange(rg)
	}
	r.noteSent()
	if r.always && r.farm.Machines() > 0 {
		r.farm.PoolNamed(r.poolName()).Broadcast = pools.BroadcastAlways
	}
}

func (r *Reader) poolName() string {
	if r.Pool != "" {
		return r.Pool
	}
	return r.farm.Pool
}

// addNetwork adds the network of a range.
func (r *Reader) addNetwork(rg dhcpRange) {
	if p, _ := rg.Network(); rg.IsAdvertised() && r.farm.SelfMade && p.Bits() == 64 {
		r.farm.Network(p, rg.at)
		r.farm.Taken(rg.at, "subnets; its addresses are those that a router advertises", p)
		return
	}
	if rg.IsAdvertised() {
		r.farm.Lost(rg.at, "addresses that hosts make of router advertisements (mode %s): drover gives addresses by DHCPv6", rg.Mode)
		return
	}
	n := declare(r.farm, rg.at, rg.Range)
	if n.Prefix.Addr().Is6() {
		n.Inherit(&r.scope6)
	}
	if n.Lease == 0 {
		n.Lease = rg.Lease
	}
	n.Proxy = n.Proxy || rg.Mode == "proxy"
	if rg.IsStatic() {
		r.farm.Taken(rg.at, "subnets", n.Prefix)
	}
}

// addRange adds the pool of a range for unknown machines.
func (r *Reader) addRange(rg dhcpRange) {
	if rg.IsStatic() || rg.IsAdvertised() || rg.Mode == "proxy" {
		return
	}
	c := r.fulfil(rg.Tags)
	negated := slices.ContainsFunc(r.ifs, func(t tagIf) bool { return slices.ContainsFunc(t.when, isNegated) })
	access := migrate.Access{Known: r.ignored || c.share == none,
		Unnamed: slices.ContainsFunc(rg.Tags, isNegated) || len(rg.Tags) > 0 && negated}
	matches := c.matches
	if c.share == some && len(matches) == 0 {
		access.Closed = "tag:" + strings.Join(rg.Tags, ",tag:")
	}
	if r.used = append(r.used, matches...); len(matches) == 0 {
		matches = []pools.Match{{}}
	}
	for _, m := range matches {
		r.addMatchedRange(rg, m, access)
	}
}

// addMatchedRange adds a pool for a range, or a machine for a range of one address that a port of a
// switch identifies.
func (r *Reader) addMatchedRange(rg dhcpRange, m pools.Match, access migrate.Access) {
	tags := r.chosen(r.closure(slices.Concat(r.Tags, rg.Tags, []string{rg.Set})))
	port := m.ClientID + m.CircuitID + m.RemoteID + m.SubscriberID
	if port != "" && rg.First == rg.Last && !access.Known && access.Closed == "" {
		machine := migrate.Machine{At: rg.at, Pool: r.Pool}
		machine.Name, machine.Match, machine.Tags = rg.Tags[len(rg.Tags)-1], m, tags
		machine.IP, machine.Lease = rg.First, rg.Lease
		r.farm.Taken(rg.at, "pools[].nodes[]; a node with match", machine.IP)
		r.farm.Add(machine)
		return
	}
	c := migrate.CatchAll{At: rg.at, Pool: pools.Pool{Name: rg.Set, Match: m, Tags: tags}}
	if c.Name == "" && len(rg.Tags) > 0 {
		c.Name = rg.Tags[len(rg.Tags)-1]
	}
	if r.Pool != "" {
		c.Name = r.Pool
	}
	if n := r.farm.NetworkOf(rg.First); n != nil && n.Lease != rg.Lease {
		c.Lease = rg.Lease
	}
	if r.always {
		c.Broadcast = pools.BroadcastAlways
	}
	if !r.Authoritative {
		no := false
		c.Authoritative = &no
	}
	span := pools.Range{First: rg.First, Last: rg.Last}
	if rg.First.Is6() {
		c.Range6, c.Authoritative = span, nil
	} else {
		c.Range = span
	}
	r.farm.Land(c, access)
}

// Read reads files of options, of hosts and of DHCP options.
func Read(f *migrate.Farm, conf, hosts, options []string) error {
	r := NewReader(f)
	for _, path := range conf {
		if err := r.readConf(path); err != nil {
			return err
		}
	}
	for _, path := range hosts {
		if err := r.readValues(path, "dhcp-host"); err != nil {
			return err
		}
	}
	for _, path := range options {
		if err := r.readValues(path, "dhcp-option"); err != nil {
			return err
		}
	}
	r.Finish()
	if len(r.ranges)+len(r.hosts)+len(r.options) == 0 {
		return migrate.FormatError(pools.Origin{File: strings.Join(slices.Concat(conf, hosts, options), ", ")}, "it has no option of dnsmasq about DHCP")
	}
	return nil
}
