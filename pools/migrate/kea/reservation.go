package kea

import (
	"fmt"
	"net/netip"
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
	readers["ip-address"] = func(v *migrate.Value) {
		if m.IP = address(v.String()); !m.IP.Is4() {
			m.IP = netip.Addr{}
			f.Unknown(v.Origin, "%q is no IPv4 address", v.String())
		}
	}
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
	case v.Get("never-send").Is():
		f.Lost(at, "an option that is never sent: drover sends none but what is written")
		return
	case !v.Get("client-classes").IsNull():
		f.Lost(at, "an option for some classes (a tag, or match of a catch-all pool)")
		return
	case !ok:
		f.Unknown(at, "unknown DHCP option")
		return
	case data == "" && o.Code != 43 && o.Code != 124 && o.Code != 125 && o.Code != 175:
		f.Lost(at, "an option without a value: drover sends none (a machine without the router of its network needs a network of its own)")
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
	f.SetNamed(s, migrate.Option{At: at, Values: values(data), Forced: v.Get("always-send").Is()}, o)
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
