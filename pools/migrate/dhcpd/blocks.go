package dhcpd

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

// subnet reads "subnet A netmask M { }" and "subnet6 P { }".
func (r *reader) subnet(l level, s statement) {
	text := s.word(1)
	if s.word(2) == "netmask" {
		text += "/" + bitsOf(s.word(3))
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		r.farm.LeftOut(s.at, "%s is no network", s.text(0))
		return
	}
	n := r.farm.Network(p, s.at)
	n.Segment = l.segment
	r.farm.Taken(s.at, "subnets", n.Prefix)
	var spans []span
	outer := l.lease
	inner := l.inside(s.block)
	inner.scope, inner.network, inner.lease, inner.ranges = &n.Scope, n, &n.Lease, &spans
	r.closeUnknown(&inner, s.block)
	r.body(inner, s.block)
	if n.Lease == 0 && outer != nil {
		n.Lease = *outer
	}
	if !n.Prefix.Addr().Is4() {
		n.Inherit(&migrate.Scope{DNS6: l.scope.DNS6, Domain6: l.scope.Domain6})
	}
	r.land(inner, migrate.CatchAll{}, spans)
}

// bitsOf returns the length of the prefix of a mask as text; "" for none.
func bitsOf(mask string) string {
	a, err := netip.ParseAddr(mask)
	bits, ok := migrate.MaskBits(a)
	if err != nil || !ok {
		return ""
	}
	return strconv.Itoa(bits)
}

// sharedNetwork reads subnets on one wire. Its options are those of each of them.
func (r *reader) sharedNetwork(l level, s statement) {
	before := len(r.farm.Networks())
	scope := &migrate.Scope{Name: "network " + s.word(1), DNS6: l.scope.DNS6, Domain6: l.scope.Domain6}
	var lease pools.Duration
	if l.lease != nil {
		lease = *l.lease
	}
	inner := l.inside(s.block)
	inner.scope, inner.segment, inner.lease = scope, migrate.TagName(s.word(1)), &lease
	r.closeUnknown(&inner, s.block)
	r.body(inner, s.block)
	for _, n := range r.farm.Networks()[before:] {
		n.Inherit(scope)
		n.Lease = cmp.Or(n.Lease, lease)
	}
}

// group reads machines with common options, which become a tag.
func (r *reader) group(l level, s statement) {
	r.groups++
	name, _ := r.farm.Tag(cmp.Or(s.word(1), fmt.Sprintf("group-%d", r.groups)))
	inner := l.inside(s.block)
	inner.scope, inner.lease, inner.tags = r.farm.TagScope(name), nil, append(slices.Clone(l.tags), name)
	r.farm.Comment(fmt.Sprintf("The group at %s.", s.at.Position()), "tags", name)
	r.body(inner, s.block)
}

// host reads a machine.
func (r *reader) host(l level, s statement) {
	m := migrate.Machine{At: s.at}
	m.Name, m.Tags = s.word(1), slices.Clone(l.tags)
	for _, st := range s.block {
		if st.word(0) == "option" && st.word(1) == "host-name" && st.word(2) != "" {
			m.Name = st.word(2)
		}
	}
	inner := level{scope: r.farm.MachineScope(&m), machine: &m, mute: l.mute}.inside(s.block)
	m.Ignore = inner.mute
	r.body(inner, s.block)
	r.farm.Add(m)
}

// hardware reads "hardware ethernet MAC".
func (r *reader) hardware(l level, s statement) {
	if l.machine == nil || s.word(1) != "ethernet" || len(s.words) != 3 {
		r.farm.Unknown(s.at, "%s: drover knows machines by Ethernet addresses", s.text(0))
		return
	}
	l.machine.Hardware = append(l.machine.Hardware, s.word(2))
}

func (r *reader) fixedAddress(l level, s statement) {
	if l.machine == nil {
		r.farm.Unknown(s.at, "it belongs into a host")
		return
	}
	values, _ := optionValues(s.words[1:])
	for _, text := range values {
		a, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			r.farm.Unknown(s.at, "address %q is a name, which this import does not look up", text)
		case a.Is6() && !l.machine.IP6.IsValid():
			l.machine.IP6 = a
		case a.Is4() && !l.machine.IP.IsValid():
			l.machine.IP = a
		default:
			r.farm.Lost(s.at, "address %s: a node has one address of each family", a)
		}
	}
}

// identifier reads "host-identifier option NAME VALUE".
func (r *reader) identifier(l level, s statement) {
	name, value := s.word(2), s.text(3)
	if l.machine == nil {
		return
	}
	if value == "" {
		value = s.word(3)
	}
	value = octets(strings.TrimSpace(value))
	switch name {
	case "agent.circuit-id":
		l.machine.Match.CircuitID = value
	case "agent.remote-id":
		l.machine.Match.RemoteID = value
	case "dhcp-client-identifier":
		l.machine.Match.ClientID = value
	case "dhcp6.client-id":
		r.farm.DUID(l.machine, s.at, value)
	default:
		r.farm.Lost(s.at, "drover matches options 61, 82.1 and 82.2 of a machine, not %s", name)
	}
}

// octets reads bytes such as 0:1:a, or a text.
func octets(value string) string {
	if strings.HasPrefix(value, `"`) {
		return unquote(value)
	}
	if values, err := (migrate.OptionName{Type: "hex"}).Encode([]string{value}); err == nil && strings.Contains(value, ":") {
		return values[0]
	}
	return value
}

// pool reads ranges with permissions.
func (r *reader) pool(l level, s statement) {
	var spans []span
	l.pool, l.ranges, l.scope = &migrate.CatchAll{At: s.at}, &spans, &migrate.Scope{Name: "pool"}
	l.lease = &l.pool.Lease
	l = l.inside(s.block)
	r.closeUnknown(&l, s.block)
	r.body(l, s.block)
	r.land(l, *l.pool, spans)
}

// closeUnknown closes the ranges of a block in which a statement is not understood: it may keep
// machines out.
func (r *reader) closeUnknown(l *level, block []statement) {
	for _, s := range block {
		if !r.knows(s) {
			l.access.Closed = cmp.Or(l.access.Closed, s.text(0))
		}
	}
}

// addresses reads "range [dynamic-bootp] FIRST [LAST]" and "range6 FIRST LAST" or a prefix.
func (r *reader) addresses(l level, s statement) {
	words := slices.DeleteFunc(slices.Clone(s.words[1:]), func(w string) bool { return w == "dynamic-bootp" || w == "temporary" })
	if len(words) == 1 {
		words = append(words, words[0])
	}
	if len(words) != 2 || l.ranges == nil {
		r.farm.Unknown(s.at, "want range FIRST LAST, in a subnet or a pool")
		return
	}
	if p, err := netip.ParsePrefix(words[0]); err == nil {
		*l.ranges = append(*l.ranges, span{migrate.RangeOf(p), s.at})
		return
	}
	var rg pools.Range
	if err := rg.UnmarshalText([]byte(words[0] + "-" + words[1])); err != nil {
		r.farm.Unknown(s.at, "%v", err)
		return
	}
	*l.ranges = append(*l.ranges, span{rg, s.at})
}

// land makes catch-all pools of ranges.
func (r *reader) land(l level, like migrate.CatchAll, spans []span) {
	for _, s := range spans {
		c := like
		c.At = s.at
		if c.Range = s.Range; s.First.Is6() {
			c.Range, c.Range6 = pools.Range{}, s.Range
		} else if !l.sure {
			no := false
			c.Authoritative = &no
		}
		if l.pool != nil {
			r.farm.PoolScope(&c, s.Range).Inherit(l.scope)
		}
		r.farm.Land(c, l.access)
	}
}
