package kea

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

// reader reads the config of one family.
type reader struct {
	farm  *migrate.Farm
	v6    bool
	names map[string]migrate.OptionName
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
				r := &reader{farm: f, v6: v6, names: migrate.OptionNames()}
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

// inner are keys of Kea about itself, its files and databases, or about details of DHCP.
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
	service-sockets-retry-wait-time allow-address-registration`

// level is a part of the config, with what is set for all that is in it.
type level struct {
	scope   *migrate.Scope
	lease   pools.Duration
	access  migrate.Access
	segment string // the name of the shared network around a subnet
	relays  []netip.Addr
	yields  bool // it sends no NAK
	global  bool
	pool    bool
}

// fields reads the keys of a level: those that several have, and its own.
func (r *reader) fields(l *level, v *migrate.Value, own migrate.Readers) {
	lost := r.farm.NoCounterpart("it is of Kea itself, of its databases or of details of its DHCP")
	readers := migrate.Readers{
		"comment": migrate.Skip, "option-data": func(v *migrate.Value) { r.options(l.scope, v) },
		"boot-file-name": r.bootFile, "next-server": r.bootServer, "server-hostname": r.bootServer,
		"valid-lifetime": func(v *migrate.Value) { r.lease(l, v) }, "user-context": func(v *migrate.Value) { r.context(l, v) },
		"authoritative": func(v *migrate.Value) { r.authoritative(l, v) },
	}
	for key := range strings.FieldsSeq(inner) {
		readers[key] = lost
	}
	for _, key := range []string{"client-class", "client-classes"} {
		readers[key] = func(v *migrate.Value) { r.members(l, v) }
	}
	for _, key := range []string{"require-client-classes", "evaluate-additional-classes"} {
		readers[key] = func(v *migrate.Value) {
			r.farm.NotTaken(v.Origin, "classes that Kea evaluates once it has the address: they keep no machine out, and give options")
		}
	}
	maps.Copy(readers, own)
	for _, p := range v.Pairs {
		if readers[p.Key] == nil && !l.global {
			l.access.Closed = cmp.Or(l.access.Closed, p.Key) // it may keep machines out
		}
	}
	r.farm.Fields(v, readers)
}

func (r *reader) bootFile(v *migrate.Value) {
	if v.String() != "" {
		r.farm.BootFile(v.Origin, v.String())
	}
}

func (r *reader) bootServer(v *migrate.Value) {
	if v.String() != "" {
		r.farm.BootServer(v.Origin, v.String())
	}
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

// members reads the classes whose members a network or a pool is for. Kea makes some itself.
func (r *reader) members(l *level, v *migrate.Value) {
	names := slices.DeleteFunc(v.Strings(), func(name string) bool { return name == "" })
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "KNOWN" })
	switch {
	case len(names) == 0 || slices.Contains(names, "ALL") || slices.Contains(names, "UNKNOWN"):
		l.access.Unnamed = l.access.Unnamed || len(names) == 1 && names[0] == "UNKNOWN"
		r.farm.Itself(v.Origin, "unknown machines may lease, as from every catch-all pool")
	case len(others) == 0:
		l.access.Known = true
		r.farm.Itself(v.Origin, "it is for machines with a reservation: nodes have fixed addresses")
	default:
		l.access.Closed = "class " + strings.Join(others, ", ")
		r.farm.NotTaken(v.Origin, "class %s: drover's match of a catch-all pool has a form of its own", strings.Join(others, ", "))
	}
}

// context reads what Kea hands to its hooks: the one of limits bounds leases.
func (r *reader) context(l *level, v *migrate.Value) {
	for _, p := range v.Pairs {
		if p.Key == "limits" {
			l.access.Closed = "limits"
		}
		r.farm.NotTaken(p.Value.Origin, "it is for the hooks of Kea")
	}
}

func (r *reader) authoritative(l *level, v *migrate.Value) {
	switch {
	case l.global:
		l.yields = !v.Is()
		r.farm.Itself(v.Origin, "authoritative of the catch-all pools: drover is for its networks, unless authoritative: false is written")
	case v.Is() == l.yields:
		r.farm.Lost(v.Origin, "authoritative of one network: that of the whole server counts (authoritative of a catch-all pool)")
	}
}

// global reads the config of one server.
func (r *reader) global(v *migrate.Value) {
	l := level{scope: &r.farm.Global, global: true, yields: !r.v6}
	if r.v6 {
		l.scope = &migrate.Scope{Name: "the IPv6 subnets"}
	}
	r.custom(v.Get("option-def"))
	r.classes(v.Get("client-classes"))
	r.fields(&l, v, migrate.Readers{
		"interfaces-config": r.interfaces, "option-def": migrate.Skip, "client-classes": migrate.Skip,
		"subnet4": migrate.Skip, "subnet6": migrate.Skip, "shared-networks": migrate.Skip, "reservations": migrate.Skip,
	})
	before := len(r.farm.Networks())
	r.subnets(l, v)
	r.each(v.Get("shared-networks"), func(v *migrate.Value) { r.sharedNetwork(l, v) })
	for _, n := range r.farm.Networks()[before:] {
		n.Lease = cmp.Or(n.Lease, l.lease)
		if r.v6 {
			n.Inherit(l.scope)
		}
	}
	r.each(v.Get("reservations"), r.reservation)
}

// each reads the items of a list.
func (r *reader) each(list *migrate.Value, read func(*migrate.Value)) {
	switch {
	case list.IsNull():
	case !list.IsList():
		r.farm.Unknown(list.Origin, "a list is expected here")
	default:
		for _, v := range list.Items {
			read(v)
		}
	}
}

// interfaces reads the interfaces: names, with or without an address.
func (r *reader) interfaces(v *migrate.Value) {
	lost := r.farm.NoCounterpart("it is about the sockets of Kea")
	readers := migrate.Readers{"comment": migrate.Skip, "interfaces": func(v *migrate.Value) {
		r.each(v, func(v *migrate.Value) {
			if name, _, _ := strings.Cut(v.String(), "/"); name != "*" && name != "" {
				r.farm.Serve(v.Origin, name)
			}
		})
	}}
	for _, p := range v.Pairs {
		if readers[p.Key] == nil {
			readers[p.Key] = lost
		}
	}
	r.farm.Fields(v, readers)
}

// classes reads the classes. None is taken over; the one called DROP, and limits, are for all
// machines.
func (r *reader) classes(list *migrate.Value) {
	r.each(list, func(v *migrate.Value) {
		name := v.Get("name").String()
		switch {
		case name == "DROP":
			r.farm.Close(v.Origin, "class DROP")
		case v.Get("user-context", "limits") != nil:
			r.farm.Close(v.Origin, "limits of class "+name)
		}
		for _, p := range v.Pairs {
			switch p.Key {
			case "boot-file-name":
				r.bootFile(p.Value)
			case "next-server", "server-hostname":
				r.bootServer(p.Value)
			case "option-data":
				r.each(p.Value, func(v *migrate.Value) { r.option(&migrate.Scope{Class: name}, v) })
			default:
				r.farm.NotTaken(p.Value.Origin, "class %q: drover chooses loaders by firmware, and has options by node, network, tag and pool", name)
			}
		}
	})
}

// network returns the readers of the keys of a network, shared or not.
func (r *reader) network(l *level) migrate.Readers {
	return migrate.Readers{
		"name": migrate.Skip, "subnet": migrate.Skip, "subnet4": migrate.Skip, "subnet6": migrate.Skip, "pools": migrate.Skip, "reservations": migrate.Skip,
		"interface": func(v *migrate.Value) { // drover finds a network by its own address there
			if v.String() != "" {
				r.farm.Serve(v.Origin, v.String())
			}
		},
		"interface-id": r.farm.NoCounterpart("a network is found by the address of its relay agent (relays, match of a pool for what the agent says)"),
		"rapid-commit": func(v *migrate.Value) {
			if v.Is() {
				r.farm.Lost(v.Origin, "rapid commit (rapidCommit: true of an IPv6 subnet, where no other server is)")
			}
		},
		"relay": func(v *migrate.Value) { l.relays = r.relays(v) },
	}
}

// sharedNetwork reads subnets on one wire. Its options are those of each of them.
func (r *reader) sharedNetwork(l level, v *migrate.Value) {
	l.segment, l.global = migrate.TagName(v.Get("name").String()), false
	l.scope = &migrate.Scope{Name: "network " + l.segment}
	r.fields(&l, v, r.network(&l))
	before := len(r.farm.Networks())
	inner := l
	inner.relays = nil
	r.subnets(inner, v)
	for i, n := range r.farm.Networks()[before:] {
		n.Inherit(l.scope)
		if i == 0 { // the others share its network
			n.Relays = append(n.Relays, l.relays...)
		}
	}
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

func (r *reader) subnets(l level, v *migrate.Value) {
	l.global = false
	for _, key := range []string{"subnet4", "subnet6"} {
		r.each(v.Get(key), func(v *migrate.Value) { r.subnet(l, v) })
	}
}

func (r *reader) subnet(l level, v *migrate.Value) {
	f := r.farm
	p, err := netip.ParsePrefix(v.Get("subnet").String())
	if err != nil {
		f.LeftOut(v.Origin, "subnet %q is no network", v.Get("subnet"))
		return
	}
	n := f.Network(p, v.Get("subnet").Origin)
	n.Segment, l.scope = l.segment, &n.Scope
	f.Taken(v.Get("subnet").Origin, "subnets", n.Prefix)
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
	r.each(v.Get("pools"), func(v *migrate.Value) { r.pool(l, v) })
	r.each(v.Get("reservations"), r.reservation)
}

// pool reads a range of addresses.
func (r *reader) pool(l level, v *migrate.Value) {
	text := v.Get("pool")
	span, err := parsePool(text.String())
	if err != nil {
		r.farm.LeftOut(v.Origin, "pool %q is no range of addresses", text)
		return
	}
	c := migrate.CatchAll{At: text.Origin}
	network := l.lease
	l.scope, l.pool = r.farm.PoolScope(&c, span), true
	r.fields(&l, v, migrate.Readers{"pool": migrate.Skip})
	if l.lease != network {
		c.Lease = l.lease
	}
	if r.v6 {
		c.Range6 = span
	} else if c.Range = span; l.yields {
		no := false
		c.Authoritative = &no
	}
	r.farm.Land(c, l.access)
}

// parsePool reads 192.0.2.1 - 192.0.2.200, or 192.0.2.64/26.
func parsePool(text string) (pools.Range, error) {
	if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
		return migrate.RangeOf(p), nil
	}
	var r pools.Range
	err := r.UnmarshalText([]byte(text))
	if err == nil && !r.IsValid() {
		err = pools.Hint("write 192.0.2.1 - 192.0.2.200", "an empty range")
	}
	return r, err
}
