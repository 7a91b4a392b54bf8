package kea

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drover/migrate"
)

// reservations reads the machines of a level, and the groups of dhcpd.
func (r *reader) reservations(l level, v *migrate.Value) {
	r.farm.Each(v.Get("reservations"), func(v *migrate.Value) {
		if name := v.Get("group"); r.given != nil && name != nil {
			r.group(l, name, v)
		} else {
			r.reservation(l, v)
		}
	})
}

// group reads machines with common options, which become a tag.
func (r *reader) group(l level, named, v *migrate.Value) {
	text := named.String()
	for i := 1; text == ""; i++ {
		if free := fmt.Sprintf("group-%d", i); !r.farm.HasTag(free) {
			text = free
		}
	}
	name, _ := r.farm.Tag(text)
	l.scope, l.tags, l.global = r.farm.TagScope(name), append(slices.Clone(l.tags), name), false
	r.farm.Comment(fmt.Sprintf("The group at %s.", v.Position()), "tags", name)
	own := r.network(&l)
	own["group"], own["valid-lifetime"] = migrate.Skip, r.noLease()
	r.fields(&l, v, own)
	r.inside(l, v)
}

func (r *reader) noLease() func(*migrate.Value) {
	return r.farm.NoCounterpart("a lease time of a group or a host (lease: of a subnet or a pool)")
}

// reservation reads a machine: its identifier, its addresses and its options.
func (r *reader) reservation(l level, v *migrate.Value) {
	f := r.farm
	m := migrate.Machine{At: v.Origin}
	m.Name, m.Tags = v.Get("hostname").String(), slices.Clone(l.tags)
	identifier := func(to *string) func(*migrate.Value) {
		return func(v *migrate.Value) { *to = octets(v.String()) }
	}
	addresses := func(v *migrate.Value) { f.Addresses(&m, v.Origin, v.Strings()) }
	none := f.NoCounterpart("prefixes: drover delegates none")
	r.fields(&level{scope: f.MachineScope(&m)}, v, migrate.Readers{
		"hw-address": func(v *migrate.Value) { m.Hardware = append(m.Hardware, v.String()) },
		"client-id":  identifier(&m.Match.ClientID), "circuit-id": identifier(&m.Match.CircuitID), "remote-id": identifier(&m.Match.RemoteID),
		"flex-id":  f.NoCounterpart("flex-id is an expression of a hook of Kea (a node has macs or match)"),
		"duid":     func(v *migrate.Value) { f.DUID(&m, v.Origin, octets(v.String())) },
		"hostname": migrate.Skip, "ip-address": addresses, "ip-addresses": addresses,
		"excluded-prefixes": none, "prefixes": none, "valid-lifetime": r.noLease(),
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
	r.farm.Each(list, func(v *migrate.Value) { r.option(s, v) })
}

func (r *reader) option(s *migrate.Scope, v *migrate.Value) {
	f := r.farm
	f.Known(v, "name", "code", "data", "space", "csv-format", "always-send", "never-send", "comment", "user-context", "client-classes")
	name, code, data, space := v.Get("name").String(), v.Get("code").String(), values(v.Get("data")), v.Get("space").String()
	at := v.Origin
	if strings.HasSuffix(at.Path, "]") {
		at.Path += " (" + cmp.Or(name, code) + ")"
	}
	if r.v6 || space == "dhcp6" {
		r.farm.Option6(s, at, cmp.Or(name, code), data)
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
	case len(data) == 0 && o.Code != 43 && o.Code != 124 && o.Code != 125 && o.Code != 175:
		f.Lost(at, "an option without a value: drover sends none (a machine without the router of its network needs a network of its own)")
		return
	case len(data) == 0 || o.Code == 124 || o.Code == 125:
		f.Lost(at, "an option that holds others (dhcpOptions has sub-options by number: 43.6, 125.311.1)")
		return
	}
	if csv := v.Get("csv-format"); csv.IsPlain() && !csv.Is() {
		o.Type = "hex"
	}
	if list := v.Get("data").List(); o.Type == "hex" && len(list) == 1 && list[0].Quoted {
		o.Type = "text"
	}
	if o.Type == "routes" {
		for i := range data {
			data[i] = strings.NewReplacer(" - ", "=", " -", "=", "- ", "=").Replace(data[i])
		}
	}
	f.SetNamed(s, migrate.Option{At: at, Values: data, Forced: v.Get("always-send").Is()}, o)
}

func parseCode(text string) (uint8, error) {
	var n uint8
	_, err := fmt.Sscanf(text, "%d", &n)
	return n, err
}

// values splits data at commas; \, is a comma of a text. Data may be a list, too.
func values(v *migrate.Value) (all []string) {
	if v.String() == "" {
		for _, item := range v.List() {
			all = append(all, item.Text)
		}
		return all
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(v.String(), `\,`, "\x00"), ",") {
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
