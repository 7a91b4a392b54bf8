package dhcpd

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"drover/migrate"
)

// block adds the statements of a block to a mapping, in Kea's form.
func (r *reader) block(l level, v *migrate.Value, all []statement) *migrate.Value {
	l = l.inside(all)
	if l.pool {
		l.rules(v, all)
	}
	for _, s := range all {
		s.at.Path = s.word(0)
		r.statement(l, v, s)
	}
	if l.host && l.mute && v.Get("client-classes") == nil { // by its group
		v.Append("client-classes", migrate.NewText(v.Origin, "DROP"))
	}
	return v
}

// renamed are the statements that Kea has by another name.
var renamed = map[string]string{
	"filename": "boot-file-name", "server-name": "server-hostname", "server-identifier": "next-server", "default-lease-time": "valid-lifetime",
}

// statement adds a statement to a mapping, or notes it.
func (r *reader) statement(l level, v *migrate.Value, s statement) {
	inner := migrate.NewMap(s.at)
	text := migrate.NewText(s.at, cmp.Or(s.word(1), s.word(0)))
	if len(s.words) > 2 {
		text.Text = s.text(1)
	}
	switch key := s.word(0); key {
	case "option":
		r.option(v, s)
	case "subnet", "subnet6":
		inner.Set("subnet", migrate.NewText(s.at, prefixOf(s)))
		v.Append("subnet4", r.block(l, inner, s.block))
	case "shared-network":
		inner.Set("name", text)
		v.Append("shared-networks", r.block(l, inner, s.block))
	case "group":
		inner.Set("group", migrate.NewText(s.at, s.word(1)))
		v.Append("reservations", r.block(l, inner, s.block))
	case "host":
		inner.Set("hostname", migrate.NewText(s.at, nameOf(s)))
		v.Append("reservations", r.block(level{host: true, mute: l.mute}, inner, s.block))
	case "pool", "pool6":
		l.pool = true
		inner.Set("pool", migrate.NewList(s.at))
		v.Append("pools", r.block(l, inner, s.block))
	case "range", "range6":
		r.addresses(l, v, s)
	case "hardware":
		if s.word(1) != "ethernet" || len(s.words) != 3 {
			r.farm.Unknown(s.at, "%s: drover knows machines by Ethernet addresses", s.text(0))
			return
		}
		v.Set("hw-address", migrate.NewText(s.at, s.word(2)))
	case "fixed-address", "fixed-address6":
		values, computed := optionValues(s)
		if v.Set("ip-addresses", values); computed {
			r.farm.Unknown(s.at, "%s is no address", s.text(1))
		}
	case "host-identifier":
		r.identifier(v, s)
	case "class", "subclass", "if", "elsif", "else", "switch", "on":
		r.class(s)
	case "allow", "deny", "ignore", "boot-unknown-clients":
		r.permit(l, v, s)
	case "authoritative", "not":
		v.Set("authoritative", migrate.NewText(s.at, strconv.FormatBool(key != "not")))
	case "included":
		r.farm.Itself(s.at, "%s is read", s.word(1))
	case "include-failed":
		r.farm.Unknown(s.at, "the file to include is not read: %s (copy it here)", s.text(1))
	case "set", "unset", "append", "prepend", "supersede", "default", "add", "log", "execute":
		r.farm.Lost(s.at, "drover computes no options: it has them by tag, network and node")
	default:
		if key == "default-lease-time" && text.Text == "-1" {
			text.Text = "4294967295" // without an end
		}
		v.Set(cmp.Or(renamed[key], key), text)
	}
}

// prefixOf returns the network of "subnet A netmask M" or "subnet6 P".
func prefixOf(s statement) string {
	mask, err := netip.ParseAddr(s.word(3))
	bits, ok := migrate.MaskBits(mask)
	if s.word(2) != "netmask" || err != nil || !ok {
		return s.text(1)
	}
	return s.word(1) + "/" + strconv.Itoa(bits)
}

// nameOf returns the name of a host: that of its option, or its own.
func nameOf(s statement) string {
	name := s.word(1)
	for _, st := range s.block {
		if st.word(0) == "option" && st.word(1) == "host-name" {
			name = cmp.Or(st.word(2), name)
		}
	}
	return name
}

// identifier reads "host-identifier option NAME VALUE": bytes such as 0:1:a, or a text.
func (r *reader) identifier(v *migrate.Value, s statement) {
	key := map[string]string{"agent.circuit-id": "circuit-id", "agent.remote-id": "remote-id", "dhcp-client-identifier": "client-id", "dhcp6.client-id": "duid"}[s.word(2)]
	value := s.text(3)
	if !strings.Contains(value, ":") || strings.HasPrefix(value, `"`) {
		value = "'" + unquote(value) + "'"
	}
	if key == "" {
		r.farm.Lost(s.at, "drover matches options 61, 82.1 and 82.2 of a machine, not %s", s.word(2))
		return
	}
	v.Set(key, migrate.NewText(s.at, value))
}

// addresses reads "range [dynamic-bootp] FIRST [LAST]", "range6 FIRST LAST" or a prefix.
func (r *reader) addresses(l level, v *migrate.Value, s statement) {
	words := slices.DeleteFunc(slices.Clone(s.words[1:]), func(w string) bool { return w == "dynamic-bootp" || w == "temporary" })
	if len(words) == 1 && !strings.Contains(words[0], "/") {
		words = append(words, words[0])
	}
	span := migrate.NewText(s.at, strings.Join(words, "-"))
	if !l.pool {
		inner := migrate.NewMap(s.at)
		inner.Append("pool", span)
		l.rules(inner, nil)
		v.Append("pools", inner)
		return
	}
	v.Append("pool", span)
}
