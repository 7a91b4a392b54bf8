package kea

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"drover/pools/migrate"
)

// reservation reads a machine: its identifier, its addresses and its options.
func (r *reader) reservation(v *migrate.Value) {
	f := r.farm
	m := migrate.Machine{At: v.Origin}
	m.Name = v.Get("hostname").String()
	identifier := func(to *string) func(*migrate.Value) {
		return func(v *migrate.Value) { *to = octets(v.String()) }
	}
	none := f.NoCounterpart("prefixes: drover delegates none")
	l := level{scope: f.MachineScope(&m)}
	r.fields(&l, v, migrate.Readers{
		"hw-address": func(v *migrate.Value) { m.Hardware = append(m.Hardware, v.String()) },
		"client-id":  identifier(&m.Match.ClientID), "circuit-id": identifier(&m.Match.CircuitID),
		"flex-id":  f.NoCounterpart("flex-id is an expression of a hook of Kea (a node has macs or match)"),
		"duid":     func(v *migrate.Value) { f.DUID(&m, v.Origin, octets(v.String())) },
		"hostname": migrate.Skip,
		"ip-address": func(v *migrate.Value) {
			if m.IP = address(v.String()); !m.IP.Is4() {
				m.IP = netip.Addr{}
				f.Unknown(v.Origin, "%q is no IPv4 address", v.String())
			}
		},
		"ip-addresses": func(v *migrate.Value) {
			for i, text := range v.Strings() {
				if i == 0 {
					m.IP6 = address(text)
				} else {
					f.Lost(v.Origin, "address %s: a node has one IPv6 address", text)
				}
			}
		},
		"excluded-prefixes": none, "prefixes": none,
		"client-classes": func(v *migrate.Value) {
			if m.Ignore = slices.Contains(v.Strings(), "DROP"); m.Ignore {
				f.Taken(v.Origin, "pools[].nodes[].ignore", true)
				return
			}
			f.NotTaken(v.Origin, "classes of a machine: give the node a tag with the options that they have")
		},
	})
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

// options reads option-data.
func (r *reader) options(s *migrate.Scope, list *migrate.Value) {
	r.each(list, func(v *migrate.Value) { r.option(s, v) })
}

func (r *reader) option(s *migrate.Scope, v *migrate.Value) {
	f := r.farm
	f.Fields(v, migrate.Readers{"name": migrate.Skip, "code": migrate.Skip, "data": migrate.Skip, "space": migrate.Skip, "csv-format": migrate.Skip,
		"always-send": migrate.Skip, "never-send": migrate.Skip, "comment": migrate.Skip, "user-context": migrate.Skip, "client-classes": migrate.Skip})
	name, code, data, space := v.Get("name").String(), v.Get("code").String(), v.Get("data").String(), v.Get("space").String()
	at := v.Origin
	at.Path += " (" + cmp.Or(name, code) + ")"
	if r.v6 {
		r.farm.Option6(s, at, cmp.Or(name, code), values(data))
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
	case s.Class != "" && !o.IsBoot():
		f.NotTaken(at, "an option for the clients of class %q (a tag, or match of a catch-all pool)", s.Class)
		return
	case space != "" && space != "dhcp4":
		f.Lost(at, "options of space %q (dhcpOptions has sub-options by number: 43.6, 125.311.1)", space)
		return
	case v.Get("never-send").Is():
		f.Lost(at, "an option that is never sent: drover sends none but what is written")
		return
	case !v.Get("client-classes").IsNull():
		f.NotTaken(at, "an option for some classes (a tag, or match of a catch-all pool)")
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
			r.farm.Lost(v.Origin, "an option of space %q (dhcpOptions has sub-options by number: 43.6, 125.311.1)", space)
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
		r.farm.Itself(v.Origin, "option %s is %d", v.Get("name"), code)
	}
}
