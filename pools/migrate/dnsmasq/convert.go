package dnsmasq

import (
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
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
	quiet-dhcp6 quiet-ra quiet-tftp bind-interfaces bind-dynamic no-dhcp-interface no-dhcpv4-interface no-dhcpv6-interface except-interface listen-address
	dhcp-leasefile leasefile-ro dhcp-lease-max dhcp-script dhcp-luascript dhcp-scriptuser script-arp script-on-renewal
	leasequery enable-dbus enable-ubus clear-on-reload test version help dhcp-hostsfile dhcp-optsfile dhcp-no-override no-ping
	dhcp-sequential-ip dhcp-reply-delay dhcp-client-update dhcp-fqdn dhcp-duid dhcp-ttl bootp-dynamic dhcp-alternate-port
	enable-tftp tftp-root tftp-no-fail tftp-unique-root tftp-secure tftp-lowercase tftp-max tftp-mtu tftp-no-blocksize tftp-port-range
	tftp-single-port ra-param bridge-interface shared-network dhcp-pxe-vendor conf-script`

// table returns the readers of the options that say something about machines.
func (r *Reader) table() map[string]func(directive) {
	return map[string]func(directive){
		"dhcp-range": r.dhcpRange, "dhcp-host": r.dhcpHost, "dhcp-option": r.dhcpOption, "dhcp-option-force": r.dhcpOption,
		"dhcp-boot": r.dhcpBoot, "dhcp-match": r.dhcpMatch, "dhcp-vendorclass": r.dhcpClass, "dhcp-userclass": r.dhcpClass,
		"dhcp-circuitid": r.relayed, "dhcp-remoteid": r.relayed, "dhcp-subscrid": r.relayed, "dhcp-mac": r.dhcpMAC,
		"tag-if": r.tagIf, "interface": r.serve, "domain": r.domainName, "dhcp-ignore": r.ignore,
		"dhcp-broadcast": r.broadcast, "dhcp-authoritative": func(d directive) {
			r.Authoritative = true
			r.farm.Taken(d.at, "drover is authoritative for its networks")
		},
		"dhcp-generate-names": func(d directive) {
			r.farm.Taken(d.at, "drover names unknown machines after their MAC, node-525400123456 (there 52-54-00-12-34-56)")
		},
		"dhcp-ignore-names": func(d directive) {
			r.farm.Taken(d.at, "drover never takes the name that a client sends")
		},
		"dhcp-rapid-commit": func(d directive) {
			r.farm.Lost(d.at, "rapid commit over IPv4: drover has it for IPv6 subnets (rapidCommit)")
		},
		"enable-ra": func(d directive) {
			r.farm.Lost(d.at, "router advertisements (server.routerAdvertisements: managed, where no router sends them)")
		},
		"read-ethers": func(d directive) {
			r.farm.Unknown(d.at, "the machines of /etc/ethers: write its lines as MAC,ADDRESS into a file for --dhcp-hosts")
		},
		"pxe-service": r.menu, "pxe-prompt": r.menu, "dhcp-name-match": r.nameMatch,
		"dhcp-proxy": func(d directive) { r.farm.Lost(d.at, "the addresses of relay agents (subnets[].relays)") },
		"dhcp-relay": func(d directive) { r.farm.Lost(d.at, "drover is no relay agent") },
	}
}

func (r *Reader) serve(d directive) {
	for _, name := range d.fields {
		switch {
		case name == "" || name == "lo":
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
	r.domain = d.fields[0]
	r.farm.Set(r.base(), migrate.Option{At: d.at, Code: 15, Values: []string{r.domain}})
}

func (r *Reader) ignore(d directive) {
	tags, rest := splitTags(d.fields)
	known, matches, ok := r.sent(tags)
	switch {
	case len(rest) > 0 || len(tags) == 0:
		r.farm.Unknown(d.at, "want tag:TAG")
	case slices.Equal(known, condition{"!known"}) && len(matches) == 0:
		r.known = true
		r.farm.Taken(d.at, "unknown machines get no answer: there is no catch-all pool")
	case !ok || len(matches) > 0 || len(known) == 0:
		r.farm.Lost(d.at, "machines that are ignored by what they send (a catch-all pool with match and ignore: true)")
	default:
		r.ignores = append(r.ignores, known)
		r.farm.Taken(d.at, "ignore: true of the machines with the tag")
	}
}

func (r *Reader) broadcast(d directive) {
	if tags, _ := splitTags(d.fields); len(tags) > 0 && !slices.Equal(tags, r.Tags) {
		r.farm.Lost(d.at, "broadcast answers for some machines (broadcast: always of a pool)")
		return
	}
	r.always = true
	r.farm.Taken(d.at, "broadcast: always of the pools")
}

func (r *Reader) menu(d directive) {
	r.farm.Lost(d.at, "menus of PXE: drover has menuTimeout of a tag, and its own loader for each firmware")
}

func (r *Reader) nameMatch(d directive) {
	if len(d.fields) > 0 {
		r.strange[strings.TrimPrefix(d.fields[0], "set:")] = true
	}
	r.farm.Lost(d.at, "what depends on the name that a client sends: drover does not trust it")
}

// Finish adds everything to the farm, once all files are read.
func (r *Reader) Finish() {
	r.settle()
	r.conds = r.conditions()
	for _, rg := range r.ranges {
		r.addNetwork(rg)
	}
	r.addOptions()
	r.addBoots()
	r.addHosts()
	for _, rg := range r.ranges {
		r.addRange(rg)
	}
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
		r.farm.Taken(rg.at, "subnets: %s; its addresses are those that a router advertises", p)
		return
	}
	if rg.IsAdvertised() {
		r.farm.Lost(rg.at, "addresses that hosts make of router advertisements (mode %s): drover gives addresses by DHCPv6", rg.Mode)
		return
	}
	n := Declare(r.farm, rg.at, rg.Range)
	if n.Prefix.Addr().Is6() {
		n.DNS6, n.Domain6 = r.dns6, r.domain6
	}
	if n.Lease == 0 {
		n.Lease = rg.Lease
	}
	if rg.Mode == "proxy" && r.farm.DHCP == "" {
		r.farm.DHCP = pools.DHCPProxy
		r.farm.Taken(rg.at, "server.dhcp: proxy")
	}
	if rg.IsStatic() {
		r.farm.Taken(rg.at, "subnets: %s", n.Prefix)
	}
}

// addRange adds the pool of a range for unknown machines.
func (r *Reader) addRange(rg dhcpRange) {
	if rg.IsStatic() || rg.IsAdvertised() || rg.Mode == "proxy" {
		return
	}
	known, matches, ok := r.sent(rg.Tags)
	if !ok || len(known) > 0 && !slices.Equal(known, condition{rg.Set}) {
		r.farm.LeftOut(rg.at, "range %s-%s is for clients with tag %s, which drover has no match for (a catch-all pool with match)", rg.First, rg.Last, strings.Join(rg.Tags, ", "))
		return
	}
	if len(matches) == 0 {
		matches = []pools.Match{{}}
	}
	for _, m := range matches {
		r.addMatchedRange(rg, m)
	}
}

// addMatchedRange adds a pool for a range, or a machine for a range of one address that a port of a
// switch identifies.
func (r *Reader) addMatchedRange(rg dhcpRange, m pools.Match) {
	tags := r.chosen(r.closure(slices.Concat(r.Tags, rg.Tags, []string{rg.Set})))
	port := m.ClientID + m.CircuitID + m.RemoteID + m.SubscriberID
	if port != "" && rg.First == rg.Last {
		machine := migrate.Machine{At: rg.at, Pool: r.Pool}
		machine.Name, machine.Match, machine.Tags = rg.Tags[len(rg.Tags)-1], m, tags
		machine.IP, machine.Lease = rg.First, rg.Lease
		r.farm.Taken(rg.at, "node %s with match", machine.Name)
		r.farm.Add(machine)
		return
	}
	if r.known && m.IsZero() {
		r.farm.Taken(rg.at, "the range is for unknown machines, and these are ignored: no catch-all pool")
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
	r.farm.Taken(rg.at, "a catch-all pool with range %s", span)
	r.farm.CatchAll(c)
}

// Read reads files of options, of hosts and of DHCP options.
func Read(f *migrate.Farm, conf, hosts, options []string) error {
	r := NewReader(f)
	for _, path := range conf {
		if err := r.ReadConf(path); err != nil {
			return err
		}
	}
	for _, path := range hosts {
		if err := r.ReadValues(path, "dhcp-host"); err != nil {
			return err
		}
	}
	for _, path := range options {
		if err := r.ReadValues(path, "dhcp-option"); err != nil {
			return err
		}
	}
	r.Finish()
	if len(r.ranges)+len(r.hosts)+len(r.options) == 0 {
		return migrate.FormatError(pools.Origin{File: strings.Join(slices.Concat(conf, hosts, options), ", ")}, "it has no option of dnsmasq about DHCP")
	}
	return nil
}
