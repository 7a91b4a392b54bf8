package kea

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/migrate"
)

// reader reads the config of one family.
type reader struct {
	farm    *migrate.Farm
	v6      bool
	names   map[string]migrate.OptionName
	classes map[string]class
	shared  string // the name of the shared network around a subnet
	yields  bool
}

// Read reads configs and fills a farm.
func Read(f *migrate.Farm, files []string) error {
	for _, file := range files {
		data, err := migrate.ReadFile(file)
		if err != nil {
			return err
		}
		root, err := migrate.ParseJSON(file, data)
		if err != nil {
			return err
		}
		if root.Get("arguments").IsMap() { // the answer to config-get
			root = root.Get("arguments")
		}
		if root.Get("Dhcp4") == nil && root.Get("Dhcp6") == nil {
			return migrate.FormatError(root.Origin, "neither Dhcp4 nor Dhcp6: that is no config of Kea's DHCP servers")
		}
		family := func(v6 bool) func(*migrate.Value) {
			return func(v *migrate.Value) {
				r := &reader{farm: f, v6: v6, names: migrate.OptionNames(), classes: map[string]class{}, yields: !v6}
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
	rebind-timer user-context server-tag multi-threading control-socket control-sockets loggers lease-database hosts-database
	hosts-databases config-control host-reservation-identifiers dhcp-queue-control early-global-reservations-lookup
	ip-reservations-unique reservations-lookup-first compatibility stash-agent-options allocator pd-allocator
	parked-packet-limit adaptive-lease-time-threshold min-valid-lifetime max-valid-lifetime preferred-lifetime min-preferred-lifetime max-preferred-lifetime
	server-id relay-supplied-options mac-sources data-directory 4o6-interface 4o6-interface-id 4o6-subnet 4o6 pd-pools
	server-hostname service-sockets-retry-wait-time allow-address-registration`

// common returns the readers of the keys that several levels have.
func (r *reader) common(s *migrate.Scope) migrate.Readers {
	readers := migrate.Readers{"comment": migrate.Skip, "option-data": func(v *migrate.Value) { r.options(s, v) }}
	lost := r.farm.NoCounterpart("it is of Kea itself, of its databases or of details of its DHCP")
	for key := range strings.FieldsSeq(inner) {
		readers[key] = lost
	}
	readers["boot-file-name"] = func(v *migrate.Value) {
		if v.String() != "" {
			r.farm.SetBoot(s, v.Origin, v.String(), netip.Addr{})
		}
	}
	readers["next-server"] = func(v *migrate.Value) {
		a, err := netip.ParseAddr(v.String())
		switch {
		case err != nil && v.String() != "":
			r.farm.Unknown(v.Origin, "%q is no address", v.String())
		case err == nil && !a.IsUnspecified(): // 0.0.0.0 is none
			r.farm.SetBoot(s, v.Origin, "", a)
		}
	}
	return readers
}

// lease returns a reader of a time in seconds.
func (r *reader) lease(to *pools.Duration) func(*migrate.Value) {
	return func(v *migrate.Value) {
		n, err := strconv.ParseUint(v.String(), 10, 32)
		if err != nil {
			r.farm.Unknown(v.Origin, "%q is no number of seconds", v.String())
			return
		}
		*to = migrate.Lease(time.Duration(n) * time.Second)
		r.farm.Taken(v.Origin, "lease: %s", to)
	}
}

// global reads the config of one server.
func (r *reader) global(v *migrate.Value) {
	f := r.farm
	var lease pools.Duration
	r.custom(v.Get("option-def"))
	r.clientClasses(v.Get("client-classes"))
	scope := &f.Global
	if r.v6 {
		scope = &migrate.Scope{Name: "the IPv6 subnets"}
	}
	readers := r.common(scope)
	readers["option-def"], readers["client-classes"] = migrate.Skip, migrate.Skip
	readers["valid-lifetime"] = r.lease(&lease)
	readers["authoritative"] = func(v *migrate.Value) {
		r.yields = !v.Is()
		f.Taken(v.Origin, "authoritative of the catch-all pools")
	}
	readers["interfaces-config"] = r.interfaces
	readers["subnet4"], readers["subnet6"], readers["shared-networks"], readers["reservations"] = migrate.Skip, migrate.Skip, migrate.Skip, migrate.Skip
	f.Fields(v, readers)
	before := len(f.Networks())
	for _, list := range []*migrate.Value{v.Get("subnet4"), v.Get("subnet6")} {
		r.subnets(list)
	}
	if shared := v.Get("shared-networks"); shared.IsList() {
		for _, n := range shared.Items {
			r.sharedNetwork(n)
		}
	}
	for _, n := range f.Networks()[before:] {
		if n.Lease == 0 {
			n.Lease = lease
		}
		if r.v6 {
			n.Inherit(scope)
		}
	}
	r.reservations(v.Get("reservations"))
}

// interfaces reads the interfaces: names, with or without an address.
func (r *reader) interfaces(v *migrate.Value) {
	for _, text := range v.Get("interfaces").Strings() {
		if name, _, _ := strings.Cut(text, "/"); name != "*" && name != "" {
			r.farm.Serve(v.Get("interfaces").Origin, name)
		}
	}
	lost := r.farm.NoCounterpart("it is about the sockets of Kea")
	readers := migrate.Readers{"interfaces": migrate.Skip, "comment": migrate.Skip}
	for _, p := range v.Pairs {
		if _, ok := readers[p.Key]; !ok {
			readers[p.Key] = lost
		}
	}
	r.farm.Fields(v, readers)
}

// sharedNetwork reads subnets on one wire. Its options are those of each of them.
func (r *reader) sharedNetwork(v *migrate.Value) {
	f := r.farm
	r.shared = migrate.TagName(v.Get("name").String())
	defer func() { r.shared = "" }()
	scope := &migrate.Scope{Name: "network " + r.shared}
	var lease pools.Duration
	readers := r.common(scope)
	readers["name"], readers["subnet4"], readers["subnet6"] = migrate.Skip, migrate.Skip, migrate.Skip
	readers["valid-lifetime"] = r.lease(&lease)
	readers["interface"] = r.wire
	r.details(readers)
	var relays []netip.Addr
	readers["relay"] = func(v *migrate.Value) { relays = r.relays(v) }
	for _, key := range []string{"client-class", "client-classes", "require-client-classes", "evaluate-additional-classes"} {
		readers[key] = f.NoCounterpart("the class of a network (match of its catch-all pool)")
	}
	f.Fields(v, readers)
	before := len(f.Networks())
	r.subnets(v.Get("subnet4"))
	r.subnets(v.Get("subnet6"))
	for i, n := range f.Networks()[before:] {
		n.Inherit(scope)
		if i == 0 { // the others share its network
			n.Relays = append(n.Relays, relays...)
		}
		if n.Lease == 0 {
			n.Lease = lease
		}
	}
}

// details gives readers those of settings of a network that drover has for all or none.
func (r *reader) details(readers migrate.Readers) {
	readers["authoritative"] = func(v *migrate.Value) {
		if v.Is() == r.yields {
			r.farm.Lost(v.Origin, "authoritative of one network: that of the whole server counts (authoritative of a catch-all pool)")
		}
	}
	readers["rapid-commit"] = func(v *migrate.Value) {
		if v.Is() {
			r.farm.Lost(v.Origin, "rapid commit (rapidCommit: true of an IPv6 subnet, where no other server is)")
		}
	}
	readers["interface-id"] = r.farm.NoCounterpart("a network is found by the address of its relay agent (relays, match of a pool for what the agent says)")
}

// wire reads the interface of a subnet: drover finds it by its own address there.
func (r *reader) wire(v *migrate.Value) {
	if v.String() != "" {
		r.farm.Serve(v.Origin, v.String())
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

func (r *reader) subnets(list *migrate.Value) {
	if list.IsNull() {
		return
	}
	if !list.IsList() {
		r.farm.Unknown(list.Origin, "a list is expected here")
		return
	}
	for _, v := range list.Items {
		r.subnet(v)
	}
}

func (r *reader) subnet(v *migrate.Value) {
	f := r.farm
	p, err := netip.ParsePrefix(v.Get("subnet").String())
	if err != nil {
		f.LeftOut(v.Origin, "subnet %q is no network", v.Get("subnet"))
		return
	}
	n := f.Network(p, v.Origin)
	n.Segment = r.shared
	f.Taken(v.Origin, "subnets: %s", n.Prefix)
	m := pools.Match{}
	readers := r.common(&n.Scope)
	for _, key := range []string{"subnet", "id", "pools", "reservations"} {
		readers[key] = migrate.Skip
	}
	r.details(readers)
	readers["valid-lifetime"] = r.lease(&n.Lease)
	readers["interface"] = r.wire
	readers["relay"] = func(v *migrate.Value) {
		for _, a := range r.relays(v) {
			if !n.Prefix.Contains(a) {
				n.Relays = append(n.Relays, a)
				f.Taken(v.Origin, "subnets[].relays: %s", a)
			}
		}
	}
	known := false
	for _, key := range []string{"client-class", "client-classes"} {
		readers[key] = func(v *migrate.Value) {
			if known = slices.Contains(v.Strings(), "KNOWN"); known {
				f.Taken(v.Origin, "the network is for machines with a reservation")
			} else {
				m = r.match(v)
			}
		}
	}
	for _, key := range []string{"require-client-classes", "evaluate-additional-classes"} {
		readers[key] = f.NoCounterpart("classes that are evaluated later (match of a catch-all pool)")
	}
	f.Fields(v, readers)
	if list := v.Get("pools"); list.IsList() {
		for _, pool := range list.Items {
			r.pool(m, known, pool)
		}
	}
	r.reservations(v.Get("reservations"))
}

// pool reads a range of addresses.
func (r *reader) pool(m pools.Match, known bool, v *migrate.Value) {
	f := r.farm
	text := v.Get("pool").String()
	span, err := parsePool(text)
	if err != nil {
		f.LeftOut(v.Origin, "pool %q is no range of addresses", text)
		return
	}
	scope := &migrate.Scope{Name: "pool " + text}
	readers := r.common(scope)
	readers["pool"], readers["pool-id"] = migrate.Skip, migrate.Skip
	for _, key := range []string{"client-class", "client-classes"} {
		readers[key] = func(v *migrate.Value) {
			for _, name := range v.Strings() {
				known = known || name == "KNOWN"
			}
			if known {
				return
			}
			if own := r.match(v); !own.IsZero() {
				m = own
			}
		}
	}
	for _, key := range []string{"require-client-classes", "evaluate-additional-classes"} {
		readers[key] = f.NoCounterpart("classes that are evaluated later (match of a catch-all pool)")
	}
	f.Fields(v, readers)
	if known {
		f.Lost(v.Origin, "pool %s is for machines with a reservation: nodes of drover have fixed addresses", text)
		return
	}
	c := migrate.CatchAll{At: v.Origin, Pool: pools.Pool{Match: m}}
	if len(scope.Options) > 0 {
		name, _ := f.Tag("pool-" + span.First.String())
		to := f.TagScope(name)
		to.Options = scope.Options
		c.Tags = []string{name}
	}
	if r.v6 {
		c.Range6 = span
	} else {
		c.Range = span
		if r.yields {
			no := false
			c.Authoritative = &no
		}
	}
	f.Taken(v.Origin, "a catch-all pool with range %s", span)
	f.CatchAll(c)
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
