package kea

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

func (r *reader) reservations(list *migrate.Value) {
	if list.IsNull() {
		return
	}
	for _, v := range list.Items {
		r.reservation(v)
	}
}

// reservation reads a machine: its identifier, its addresses and its options.
func (r *reader) reservation(v *migrate.Value) {
	f := r.farm
	m := migrate.Machine{At: v.Origin}
	scope := &migrate.Scope{Name: "node"}
	readers := r.common(scope)
	identifier := func(to *string) func(*migrate.Value) {
		return func(v *migrate.Value) { *to = octets(v.String()) }
	}
	readers["hw-address"] = func(v *migrate.Value) { m.Hardware = append(m.Hardware, v.String()) }
	readers["client-id"], readers["circuit-id"] = identifier(&m.Match.ClientID), identifier(&m.Match.CircuitID)
	readers["flex-id"] = f.NoCounterpart("flex-id is an expression of a hook of Kea (a node has macs or match)")
	readers["duid"] = func(v *migrate.Value) { r.duid(&m, v) }
	readers["hostname"] = func(v *migrate.Value) { m.Name = v.String() }
	readers["ip-address"] = func(v *migrate.Value) { m.IP = address(v.String()) }
	readers["ip-addresses"] = func(v *migrate.Value) {
		for i, text := range v.Strings() {
			if i == 0 {
				m.IP6 = address(text)
			} else {
				f.Lost(v.Origin, "address %s: a node has one IPv6 address", text)
			}
		}
	}
	readers["excluded-prefixes"] = f.NoCounterpart("prefixes: drover delegates none")
	readers["prefixes"] = f.NoCounterpart("prefixes: drover delegates none")
	readers["client-classes"] = func(v *migrate.Value) { r.reserved(&m, v) }
	f.Fields(v, readers)
	if len(m.Hardware) > 0 && !m.Match.IsZero() {
		f.Lost(v.Origin, "the identifier beside the MAC: drover knows the machine by its MAC")
		m.Match = pools.Match{}
	}
	f.Own(&m, scope)
	f.Add(m)
}

func address(text string) netip.Addr {
	a, _ := netip.ParseAddr(strings.TrimSpace(text)) // the zero Addr is noted as a machine without an address
	return a
}

// octets reads an identifier: bytes in hex, or a text in single quotes.
func octets(text string) string {
	if inner, ok := strings.CutPrefix(text, "'"); ok {
		return strings.TrimSuffix(inner, "'")
	}
	o := migrate.OptionName{Type: "hex"}
	if values, err := o.Encode([]string{text}); err == nil {
		return values[0]
	}
	return text
}

// duid reads the DUID of a machine. The two that hold a MAC say which machine it is; drover
// does not know the others.
func (r *reader) duid(m *migrate.Machine, v *migrate.Value) {
	digits := strings.TrimPrefix(octets(v.String()), "hex:")
	switch {
	case len(digits) == 28 && strings.HasPrefix(digits, "00010001"), len(digits) == 20 && strings.HasPrefix(digits, "00030001"):
		m.Hardware = append(m.Hardware, digits[len(digits)-12:])
		r.farm.Taken(v.Origin, "macs: the MAC in the DUID")
	default:
		r.farm.Lost(v.Origin, "a DUID without a MAC: drover knows a machine by its MAC, whatever its DUID")
	}
}

// reserved reads the classes of a reservation: their options become a tag.
func (r *reader) reserved(m *migrate.Machine, v *migrate.Value) {
	for _, name := range v.Strings() {
		c, ok := r.classes[name]
		if !ok {
			r.farm.Unknown(v.Origin, "class %q is not in client-classes", name)
			continue
		}
		if len(c.scope.Options) == 0 {
			continue
		}
		tag, _ := r.farm.Tag(name)
		r.farm.TagScope(tag).Options = c.scope.Options
		m.Tags = append(m.Tags, tag)
	}
}

// options reads option-data.
func (r *reader) options(s *migrate.Scope, list *migrate.Value) {
	if !list.IsList() {
		r.farm.Unknown(list.Origin, "a list is expected here")
		return
	}
	for _, v := range list.Items {
		r.option(s, v)
	}
}

func (r *reader) option(s *migrate.Scope, v *migrate.Value) {
	f := r.farm
	f.Fields(v, migrate.Readers{"name": migrate.Skip, "code": migrate.Skip, "data": migrate.Skip, "space": migrate.Skip, "csv-format": migrate.Skip,
		"always-send": migrate.Skip, "never-send": migrate.Skip, "comment": migrate.Skip, "user-context": migrate.Skip, "client-classes": migrate.Skip})
	name, code, data, space := v.Get("name").String(), v.Get("code").String(), v.Get("data").String(), v.Get("space").String()
	at := v.Origin
	at.Path = "option " + name + code
	if r.v6 {
		r.option6(s, at, name, code, data)
		return
	}
	o, ok := r.names[name]
	if code != "" && (name == "" || !ok) {
		for _, known := range r.names {
			if fmt.Sprint(known.Code) == code {
				o, ok = known, true
			}
		}
		if n, err := parseCode(code); err == nil && !ok {
			o, ok = migrate.OptionName{Code: n, Type: "text"}, true
		}
	}
	switch {
	case space != "" && space != "dhcp4":
		f.Lost(at, "options of space %q (dhcpOptions has sub-options by number: 43.6, 125.311.1)", space)
		return
	case !v.Get("client-classes").IsNull():
		f.Lost(at, "an option for some classes (a tag, or match of a catch-all pool)")
		return
	case !ok:
		f.Unknown(at, "unknown DHCP option")
		return
	case data == "" || o.Code == 124 || o.Code == 125:
		f.Lost(at, "an option that holds others (dhcpOptions has sub-options by number: 43.6, 125.311.1)")
		return
	}
	if csv := v.Get("csv-format"); csv.IsPlain() && !csv.Is() {
		o.Type = "hex"
	}
	if o.Type == "routes" {
		data = strings.NewReplacer(" - ", "=", " -", "=", "- ", "=").Replace(data)
	}
	f.SetNamed(s, migrate.Option{At: at, Values: values(data)}, o)
}

// option6 reads an option of DHCPv6: name servers and domain, which a subnet has.
func (r *reader) option6(s *migrate.Scope, at pools.Origin, name, code, data string) {
	switch {
	case name == "dns-servers" || code == "23":
		s.DNS6 = nil
		for _, text := range values(data) {
			s.DNS6 = append(s.DNS6, address(text))
		}
		r.farm.Taken(at, "subnets[].dns")
	case name == "domain-search" || code == "24":
		s.Domain6 = values(data)[0]
		r.farm.Taken(at, "subnets[].domain")
	default:
		r.farm.Lost(at, "an option of DHCPv6 (dns and domain of an IPv6 subnet, or dhcpOptions of a tag: option6:NUMBER)")
	}
}

func parseCode(text string) (uint8, error) {
	var n uint8
	_, err := fmt.Sscanf(text, "%d", &n)
	return n, err
}

// values splits data at commas; \, is a comma of a text.
func values(data string) (all []string) {
	for part := range strings.SplitSeq(strings.ReplaceAll(data, `\,`, "\x00"), ",") {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(part), "\x00", ","))
	}
	return all
}

// custom reads definitions of options.
func (r *reader) custom(list *migrate.Value) {
	if !list.IsList() {
		return
	}
	for _, v := range list.Items {
		if space := v.Get("space").String(); space != "" && space != "dhcp4" {
			continue
		}
		code, err := parseCode(v.Get("code").String())
		types := map[string]string{"ipv4-address": "ip", "string": "text", "fqdn": "domains", "boolean": "bool", "binary": "hex"}
		kind := v.Get("type").String()
		if t, ok := types[kind]; ok {
			kind = t
		}
		if err != nil || r.v6 {
			continue
		}
		r.names[v.Get("name").String()] = migrate.OptionName{Code: code, Type: kind}
		r.farm.Taken(v.Origin, "option %s is %d", v.Get("name"), code)
	}
}

// class is a client class.
type class struct {
	match pools.Match
	known bool // the test is one that drover has
	scope migrate.Scope
}

var (
	vendorClass = regexp.MustCompile(`^substring\(option\[(?:60|vendor-class-identifier)\]\.(?:hex|text), *0, *\d+\) *== *'([^']*)'$`)
	wholeClass  = regexp.MustCompile(`^option\[(?:60|vendor-class-identifier)\]\.(?:hex|text) *== *'([^']*)'$`)
	arch        = regexp.MustCompile(`^option\[(?:93|client-system)\]\.hex *== *0x([0-9a-fA-F]{1,4})$`)
	userClass   = regexp.MustCompile(`^option\[(?:77|user-class)\]\.(?:hex|text) *== *'([^']*)'$`)
	ipxe        = regexp.MustCompile(`^option\[175\]\.exists$`)
)

// clientClasses reads the classes. Their boot files are rules of loaders for all nodes.
func (r *reader) clientClasses(list *migrate.Value) {
	f := r.farm
	if !list.IsList() {
		return
	}
	for _, v := range list.Items {
		c := class{}
		c.match, c.known = parseTest(v.Get("test").String())
		readers := r.common(&c.scope)
		c.scope.Name = "class " + v.Get("name").String()
		file, server := "", netip.Addr{}
		readers["boot-file-name"] = func(v *migrate.Value) { file = v.String() }
		readers["next-server"] = func(v *migrate.Value) { server = address(v.String()) }
		for _, key := range []string{"name", "test", "option-def", "only-if-required", "only-in-additional-list", "valid-lifetime", "server-hostname"} {
			readers[key] = migrate.Skip
		}
		readers["template-test"] = f.NoCounterpart("classes that a template makes")
		readers["option-data"] = func(v *migrate.Value) {
			r.options(&c.scope, v)
		}
		f.Fields(v, readers)
		name := v.Get("name").String()
		r.classes[name] = c
		switch {
		case file != "" && c.known:
			if server.IsUnspecified() {
				server = netip.Addr{}
			}
			f.Loader(&f.Global, v.Origin, pools.LoaderRule{Arch: c.match.Arch, Class: c.match.Class, UserClass: c.match.UserClass, Loader: file, Server: server})
		case !c.known && v.Get("test").String() != "":
			f.Lost(v.Origin, "class %q: its test is no match of drover (class, userClass, arch): what depends on it is left", name)
		default:
			f.Taken(v.Origin, "class %q, where a pool or a machine names it", name)
		}
	}
}

// parseTest returns the match for the test of a class. ok is false if drover has none.
func parseTest(test string) (m pools.Match, ok bool) {
	test = strings.TrimSpace(test)
	for strings.HasPrefix(test, "(") && strings.HasSuffix(test, ")") && strings.Count(test, "(") == 1 {
		test = strings.TrimSpace(test[1 : len(test)-1])
	}
	if left, right, and := strings.Cut(test, " and "); and {
		a, ok1 := parseTest(left)
		b, ok2 := parseTest(right)
		if a.Class == "" {
			a.Class = b.Class
		}
		if a.Arch.IsZero() {
			a.Arch = b.Arch
		}
		if a.UserClass == "" {
			a.UserClass = b.UserClass
		}
		return a, ok1 && ok2
	}
	if found := vendorClass.FindStringSubmatch(test); found != nil {
		return pools.Match{Class: found[1] + "*"}, true
	}
	if found := wholeClass.FindStringSubmatch(test); found != nil {
		return pools.Match{Class: found[1]}, true
	}
	if found := userClass.FindStringSubmatch(test); found != nil {
		return pools.Match{UserClass: found[1]}, true
	}
	if found := arch.FindStringSubmatch(test); found != nil {
		return m, m.Arch.UnmarshalText([]byte("0x"+found[1])) == nil
	}
	if ipxe.MatchString(test) {
		return pools.Match{UserClass: "iPXE"}, true
	}
	return m, false
}

// match returns the match of the classes of a subnet or a pool.
func (r *reader) match(v *migrate.Value) (m pools.Match) {
	for _, name := range v.Strings() {
		switch c := r.classes[name]; {
		case name == "UNKNOWN" || name == "ALL" || name == "":
		case c.known:
			m = c.match
			r.farm.Taken(v.Origin, "match of the catch-all pool: class %q", name)
		case strings.HasPrefix(name, "VENDOR_CLASS_"):
			m.Class = strings.TrimPrefix(name, "VENDOR_CLASS_")
			r.farm.Taken(v.Origin, "match of the catch-all pool: class %q", m.Class)
		default:
			r.farm.Lost(v.Origin, "class %q is no match of drover: the pool is for all unknown machines", name)
		}
	}
	return m
}
