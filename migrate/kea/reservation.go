package kea

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drover/migrate"
)

// group reads machines with common options, which become a tag.
func (r *reader) group(l level, named, v *migrate.Value) {
	text := named.String()
	for i := 1; text == ""; i++ {
		if free := fmt.Sprintf("group-%d", i); !r.farm.HasTag(free) {
			text = free
		}
	}
	name, _ := r.farm.Tag(text)
	outer := l.scope
	l.scope, l.tags = r.farm.TagScope(name), append(slices.Clone(l.tags), name)
	l.scope.Inherit6(outer)
	r.farm.Comment(fmt.Sprintf("The group at %s.", v.Position()), "tags", name)
	own := r.network(&l)
	own["group"], own["valid-lifetime"] = migrate.Skip, r.farm.NoCounterpart(noLease)
	r.fields(&l, v, own)
	r.inside(l, v)
}

const noLease = "a lease time of a group or a host (lease: of a subnet or a pool)"

// reservation reads a machine: its identifier, its addresses and its options.
func (r *reader) reservation(l level, v *migrate.Value) {
	f := r.farm
	m := migrate.Machine{At: v.Origin}
	m.Name, m.Tags = v.Get("hostname").String(), slices.Clone(l.tags)
	identifier := func(to *string) func(*migrate.Value) {
		return func(v *migrate.Value) { *to = octets(v.String()) }
	}
	addresses := func(v *migrate.Value) { f.Addresses(&m, v.Origin, v.Strings()) }
	none := f.NoCounterpart("drover delegates no prefixes, and knows a machine by macs or match")
	r.fields(&level{scope: f.MachineScope(&m)}, v, migrate.Readers{
		"hw-address": func(v *migrate.Value) { m.Hardware = append(m.Hardware, v.String()) },
		"client-id":  identifier(&m.Match.ClientID), "circuit-id": identifier(&m.Match.CircuitID), "remote-id": identifier(&m.Match.RemoteID),
		"duid":     func(v *migrate.Value) { f.DUID(&m, v.Origin, octets(v.String())) },
		"hostname": migrate.Skip, "ip-address": addresses, "ip-addresses": addresses,
		"flex-id": none, "excluded-prefixes": none, "prefixes": none, "valid-lifetime": f.NoCounterpart(noLease),
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
		f.Option6(s, at, cmp.Or(name, code), data)
		return
	}
	o, ok := r.names[name]
	if !ok && code != "" {
		o, ok = r.names.WithCode(code)
	}
	switch {
	case space != "" && space != "dhcp4" || o.Code == 124 || o.Code == 125 || o.Code == 43 && len(data) == 0:
		f.Lost(at, "options of space %q (dhcpOptions has sub-options by number: 43.6, 125.311.1)", cmp.Or(space, name))
		return
	case !ok:
		f.Unknown(at, "unknown DHCP option")
		return
	case v.Get("never-send").Is() || !v.Get("client-classes").IsNull():
		f.NotTaken(at, "an option for some clients (a tag, or match of a catch-all pool)")
		return
	case len(data) == 0:
		f.Lost(at, "an option without a value: drover sends none (a machine without the router of its network needs a network of its own)")
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

// custom reads the definition of an option.
func (r *reader) custom(v *migrate.Value) {
	switch space := v.Get("space").String(); {
	case r.v6:
	case space != "" && space != "dhcp4":
		r.farm.Lost(v.Origin, "an option of space %q (dhcpOptions has sub-options by number: 43.6, 125.311.1)", space)
	default:
		r.farm.Define(r.names, v.Origin, v.Get("name").String(), v.Get("code").String(), v.Get("type").String())
	}
}
