package kea

import (
	"cmp"
	"maps"
	"net/netip"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// reader reads the config of one family, or that of dhcpd, which has both.
type reader struct {
	farm  *migrate.Farm
	v6    bool
	names migrate.OptionNames
	dhcpd bool // it has groups, and rules that Kea has not
}

// Read reads configs and fills a farm.
func Read(f *migrate.Farm, files []string) error {
	for _, file := range files {
		root, err := migrate.ReadJSON(file)
		if err != nil {
			return err
		}
		f.SourceTree(root)
		if root.Get("arguments").IsMap() { // the answer to config-get
			root = root.Get("arguments")
		}
		if root.Get("Dhcp4") == nil && root.Get("Dhcp6") == nil {
			return migrate.FormatError(root.Origin, "neither Dhcp4 nor Dhcp6: that is no config of Kea's DHCP servers")
		}
		family := func(v6 bool) func(*migrate.Value) {
			return func(v *migrate.Value) {
				r := &reader{farm: f, v6: v6, names: migrate.NewOptionNames()}
				f.Each(v.Get("option-def"), r.custom)
				r.classes(v.Get("client-classes"))
				r.global(v)
			}
		}
		other := f.NoCounterpart("it is of another program of Kea")
		f.Fields(root, migrate.Readers{
			"Dhcp4": family(false), "Dhcp6": family(true), "Logging": other, "DhcpDdns": other, "Control-agent": other,
			"Netconf": other, "hash": migrate.Skip,
		})
	}
	return nil
}

// ReadTree reads a config that has been brought into Kea's form, both families together: a
// reservation with the key group is a group of them, and a pool with the key rule is left out.
// names has the options of the config.
func ReadTree(f *migrate.Farm, v *migrate.Value, names migrate.OptionNames) {
	r := &reader{farm: f, names: names, dhcpd: true}
	r.global(v)
}

// inner are keys of Kea, and statements of dhcpd, about the server itself, its files and databases,
// DNS updates or details of DHCP.
const inner = `calculate-tee-times cache-threshold cache-max-age ddns-send-updates ddns-override-no-update ddns-override-client-update
	ddns-replace-client-name ddns-generated-prefix ddns-qualifying-suffix ddns-update-on-renew ddns-use-conflict-resolution
	ddns-conflict-resolution-mode ddns-ttl ddns-ttl-percent ddns-ttl-min ddns-ttl-max dhcp-ddns decline-probation-period
	dhcp4o6-port echo-client-id expired-leases-processing hooks-libraries hostname-char-set hostname-char-replacement
	match-client-id offer-lifetime offer-lft reservation-mode reservations-global reservations-in-subnet reservations-out-of-pool sanity-checks
	statistic-default-sample-count statistic-default-sample-age store-extended-info t1-percent t2-percent renew-timer
	rebind-timer server-tag multi-threading control-socket control-sockets loggers lease-database hosts-database
	hosts-databases config-control host-reservation-identifiers dhcp-queue-control early-global-reservations-lookup
	ip-reservations-unique reservations-lookup-first compatibility stash-agent-options allocator pd-allocator id pool-id
	parked-packet-limit adaptive-lease-time-threshold min-valid-lifetime max-valid-lifetime preferred-lifetime min-preferred-lifetime max-preferred-lifetime
	server-id relay-supplied-options mac-sources data-directory 4o6-interface 4o6-interface-id 4o6-subnet 4o6 pd-pools
	service-sockets-retry-wait-time allow-address-registration interface-id rapid-commit

	ddns-update-style ddns-updates ddns-domainname ddns-rev-domainname ddns-hostname ddns-local-address4 ddns-local-address6
	ddns-update-conflict-detection ddns-other-guard-is-dynamic ddns-dual-stack-mixed-mode ddns-guard-id-must-match update-conflict-detection
	update-optimization update-static-leases do-forward-updates do-reverse-updates client-updates log-facility lease-file-name pid-file-name
	dhcpv6-lease-file-name dhcpv6-pid-file-name db-time-format omapi-port omapi-key key zone failover local-address local-port local-address6
	remote-port ping-check ping-timeout ping-timeout-ms one-lease-per-client lease-id-format always-broadcast always-reply-rfc1048
	bind-local-address6 abandon-lease-time delayed-ack max-ack-delay dhcp-cache-threshold
	dont-use-fsync server-duid server-id-check use-lease-addr-for-default-route use-host-decl-names get-lease-hostnames
	site-option-space vendor-option-space min-lease-time max-lease-time min-secs dynamic-bootp-lease-cutoff
	dynamic-bootp-lease-length limit-addrs-per-ia limit-prefs-per-ia prefix-length-mode release-on-roam ignore-client-uids
	infinite-is-reserved check-secs-byte-order log-threshold-high log-threshold-low persist-eui-64-leases authoring-byte-order
	prefix6 fixed-prefix6 leasequery db-time ddns lease parse-vendor-option send-host-names use-eui-64 syslog bootp duplicates
	declines known-clients client-identifier`

// level is a part of the config, with what is set for all that is in it.
type level struct {
	scope   *migrate.Scope
	lease   pools.Duration
	access  migrate.Access
	segment string // the name of the shared network around a subnet
	tags    []string
	relays  []netip.Addr
	yields  bool // it sends no NAK
	global  bool
	pool    bool
}

// fields reads the keys of a level: those that several have, and its own.
func (r *reader) fields(l *level, v *migrate.Value, own migrate.Readers) {
	f := r.farm
	lost := f.NoCounterpart("it is of the server itself, of its databases and files, of DNS updates or of details of DHCP")
	bootServer := func(v *migrate.Value) { f.BootServer(v.Origin, v.String()) }
	members := func(v *migrate.Value) { r.members(l, v) }
	late := func(v *migrate.Value) {
		f.NotTaken(v.Origin, "classes that Kea evaluates once it has the address: they keep no machine out, and give options")
	}
	readers := migrate.Readers{
		"comment": migrate.Skip, "option-data": func(v *migrate.Value) { r.options(l.scope, v) },
		"boot-file-name": func(v *migrate.Value) { f.BootFile(v.Origin, v.String()) }, "next-server": bootServer, "server-hostname": bootServer,
		"valid-lifetime": func(v *migrate.Value) { r.lease(l, v) }, "user-context": func(v *migrate.Value) { r.limits(l, v) },
		"authoritative": func(v *migrate.Value) { r.authoritative(l, v) }, "client-class": members, "client-classes": members,
		"require-client-classes": late, "evaluate-additional-classes": late,
	}
	if r.dhcpd {
		readers["rule"] = func(v *migrate.Value) {
			l.access.Closed = cmp.Or(l.access.Closed, v.Text)
			f.NotTaken(v.Origin, "%s: drover's match of a catch-all pool has a form of its own", v)
		}
	}
	for key := range strings.FieldsSeq(inner) {
		readers[key] = lost
	}
	maps.Copy(readers, own)
	for _, p := range v.Pairs {
		if readers[p.Key] == nil && !l.global {
			l.access.Closed = cmp.Or(l.access.Closed, p.Key) // it may keep machines out
		}
	}
	f.Fields(v, readers)
}

// lease reads the lease time of a level.
func (r *reader) lease(l *level, v *migrate.Value) {
	path := "subnets[].lease"
	if l.pool {
		path = "pools[].lease"
	}
	if d, ok := r.farm.ParseSeconds(v.Origin, v.String(), path); ok {
		l.lease = d
	}
}

// authoritative reads whether the server refuses addresses that it does not know.
func (r *reader) authoritative(l *level, v *migrate.Value) {
	if !l.global {
		r.farm.NotTaken(v.Origin, "authoritative of one network: that of the whole server counts (authoritative of a catch-all pool)")
		return
	}
	l.yields = !v.Is()
	r.farm.Itself(v.Origin, "authoritative of the catch-all pools: drover is for its networks, unless authoritative: false is written")
}

// global reads the config of one server.
func (r *reader) global(v *migrate.Value) {
	l := level{scope: &r.farm.Global, global: true, yields: true}
	r.fields(&l, v, migrate.Readers{
		"interfaces-config": r.interfaces, "option-def": migrate.Skip, "client-classes": migrate.Skip,
		"subnet4": migrate.Skip, "subnet6": migrate.Skip, "shared-networks": migrate.Skip, "reservations": migrate.Skip,
	})
	r.inside(l, v)
}

// interfaces reads the interfaces: names, with or without an address.
func (r *reader) interfaces(v *migrate.Value) {
	for _, p := range v.Pairs {
		if p.Key != "interfaces" {
			r.farm.Lost(p.Value.Origin, "it is about the sockets of Kea")
			continue
		}
		r.farm.Each(p.Value, func(v *migrate.Value) {
			if name, _, _ := strings.Cut(v.String(), "/"); name != "*" && name != "" {
				r.farm.Serve(v.Origin, name)
			}
		})
	}
}

// network returns the readers of the keys of a network, shared or not, and of a group.
func (r *reader) network(l *level) migrate.Readers {
	return migrate.Readers{
		"name": migrate.Skip, "shared-networks": migrate.Skip, "subnet": migrate.Skip, "subnet4": migrate.Skip, "subnet6": migrate.Skip, "pools": migrate.Skip, "reservations": migrate.Skip,
		"interface": func(v *migrate.Value) { // drover finds a network by its own address there
			if v.String() != "" {
				r.farm.Serve(v.Origin, v.String())
			}
		},
		"relay": func(v *migrate.Value) { l.relays = r.relays(v) },
	}
}

// sharedNetwork reads subnets on one wire. Its options are those of each of them.
func (r *reader) sharedNetwork(l level, v *migrate.Value) {
	outer := l.scope
	l.segment, l.global = migrate.TagName(v.Get("name").String()), false
	l.scope = &migrate.Scope{Name: "network " + l.segment}
	l.scope.Inherit6(outer)
	r.fields(&l, v, r.network(&l))
	before, relays := len(r.farm.Networks()), l.relays
	l.relays = nil
	r.inside(l, v)
	for i, n := range r.farm.Networks()[before:] {
		n.Inherit(l.scope)
		if i == 0 { // the others share its network
			n.Relays = append(n.Relays, relays...)
		}
	}
}

// inside reads what the server, a network, a pool or a group has in it. dhcpd has all in each other.
func (r *reader) inside(l level, v *migrate.Value) {
	global := l.global
	l.global = false
	for _, key := range []string{"subnet4", "subnet6"} {
		r.farm.Each(v.Get(key), func(v *migrate.Value) { r.subnet(l, v) })
	}
	r.farm.Each(v.Get("shared-networks"), func(v *migrate.Value) { r.sharedNetwork(l, v) })
	if !global {
		r.farm.Each(v.Get("pools"), func(v *migrate.Value) { r.pool(l, v) })
	}
	r.farm.Each(v.Get("reservations"), func(v *migrate.Value) {
		if name := v.Get("group"); r.dhcpd && name != nil {
			r.group(l, name, v)
		} else {
			r.reservation(l, v)
		}
	})
}

func (r *reader) relays(v *migrate.Value) (all []netip.Addr) {
	for _, text := range append(v.Get("ip-addresses").Strings(), v.Get("ip-address").Strings()...) {
		a, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			r.farm.Unknown(v.Origin, "%q is no address of a relay agent", text)
		case !a.IsUnspecified():
			all = append(all, a)
		}
	}
	return all
}

func (r *reader) subnet(l level, v *migrate.Value) {
	f, at := r.farm, v.Get("subnet")
	p, err := netip.ParsePrefix(at.String())
	if err != nil {
		f.LeftOut(v.Origin, "subnet %q is no network", at)
		return
	}
	n := f.Network(p, at.Origin)
	n.Inherit6(l.scope)
	n.Segment, l.scope = l.segment, &n.Scope
	f.Taken(at.Origin, "subnets", n.Prefix)
	r.fields(&l, v, r.network(&l))
	n.Lease = l.lease
	for _, a := range l.relays {
		if n.Prefix.Contains(a) {
			f.Itself(v.Get("relay").Origin, "the relay agent is in the network itself")
		} else {
			n.Relays = append(n.Relays, a)
			f.Taken(v.Get("relay").Origin, "subnets[].relays", a)
		}
	}
	r.inside(l, v)
}

// pool reads a range of addresses of a level. A pool of dhcpd has several.
func (r *reader) pool(l level, v *migrate.Value) {
	inner := l
	inner.scope, inner.pool = &migrate.Scope{Name: "pool"}, true
	r.fields(&inner, v, migrate.Readers{"pool": migrate.Skip, "reservations": migrate.Skip})
	var c migrate.CatchAll
	if inner.lease != l.lease {
		c.Lease = inner.lease
	}
	spans := v.Get("pool").List()
	if !v.Get("pool").IsList() {
		spans = []*migrate.Value{cmp.Or(v.Get("pool"), v)}
	}
	for _, span := range spans {
		r.span(inner, c, span)
	}
	r.inside(l, v)
}

// span makes a catch-all pool of a range: 192.0.2.1 - 192.0.2.200, or 192.0.2.64/26.
func (r *reader) span(l level, c migrate.CatchAll, v *migrate.Value) {
	var span pools.Range
	if p, err := netip.ParsePrefix(strings.TrimSpace(v.String())); err == nil {
		span = migrate.RangeOf(p)
	} else if err := span.UnmarshalText([]byte(v.String())); err != nil || !span.IsValid() {
		r.farm.LeftOut(v.Origin, "pool %q is no range of addresses", v)
		return
	}
	c.At = v.Origin
	if c.Range = span; span.First.Is6() {
		c.Range, c.Range6 = pools.Range{}, span
	} else if l.yields {
		no := false
		c.Authoritative = &no
	}
	r.farm.PoolScope(&c, span).Inherit(l.scope)
	r.farm.Land(c, l.access)
}
