package dhcpd

import (
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
	r.farm.Taken(s.at, "subnets: %s", n.Prefix)
	var spans []span
	inner := level{scope: &n.Scope, network: n, segment: l.segment, tags: l.tags, lease: &n.Lease, ranges: &spans, known: l.knownOnly(s.block), sure: l.authoritative(s.block)}
	r.body(inner, s.block)
	if n.Lease == 0 && l.lease != nil {
		n.Lease = *l.lease
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
	r.body(level{scope: scope, segment: migrate.TagName(s.word(1)), tags: l.tags, lease: &lease, known: l.knownOnly(s.block), sure: l.authoritative(s.block)}, s.block)
	for _, n := range r.farm.Networks()[before:] {
		n.Inherit(scope)
		if n.Lease == 0 {
			n.Lease = lease
		}
	}
}

// group reads machines with common options, which become a tag.
func (r *reader) group(l level, s statement) {
	r.groups++
	name := s.word(1)
	if name == "" {
		name = fmt.Sprintf("group-%d", r.groups)
	}
	scope := &migrate.Scope{}
	tag := migrate.TagName(name)
	scope.Name = "tags." + tag
	inner := l
	inner.scope, inner.lease, inner.known, inner.sure = scope, nil, l.knownOnly(s.block), l.authoritative(s.block)
	inner.tags = append(slices.Clone(l.tags), tag)
	plain := slices.IndexFunc(s.block, func(st statement) bool { return !st.has && st.word(0) != "" }) >= 0
	if plain {
		r.farm.Tag(tag)
		to := r.farm.TagScope(tag)
		to.Name = scope.Name
		inner.scope = to
		r.farm.Comment(fmt.Sprintf("The group at %s.", s.at.Position()), "tags", tag)
	} else {
		inner.tags = l.tags
	}
	r.body(inner, s.block)
}

// host reads a machine.
func (r *reader) host(l level, s statement) {
	m := migrate.Machine{At: s.at}
	m.Name, m.Tags = s.word(1), slices.Clone(l.tags)
	scope := &migrate.Scope{Name: "node " + s.word(1)}
	for _, st := range s.block {
		if st.word(0) == "option" && st.word(1) == "host-name" && st.word(2) != "" {
			m.Name = st.word(2)
		}
	}
	r.body(level{scope: scope, machine: &m}, s.block)
	if len(m.Hardware) > 0 && !m.Match.IsZero() {
		r.farm.Lost(s.at, "the identifier beside the MAC: drover knows the machine by its MAC")
		m.Match = pools.Match{}
	}
	r.farm.Own(&m, scope)
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
		digits := strings.TrimPrefix(value, "hex:")
		if len(digits) == 28 && strings.HasPrefix(digits, "00010001") || len(digits) == 20 && strings.HasPrefix(digits, "00030001") {
			l.machine.Hardware = append(l.machine.Hardware, digits[len(digits)-12:])
			return
		}
		r.farm.Lost(s.at, "a DUID without a MAC: drover knows a machine by its MAC, whatever its DUID")
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
	c := migrate.CatchAll{At: s.at}
	var spans []span
	inner := level{scope: &migrate.Scope{Name: "pool"}, network: l.network, tags: l.tags, lease: &c.Lease, pool: &c, ranges: &spans, known: l.known, sure: l.authoritative(s.block)}
	inner.known = inner.knownOnly(s.block)
	r.body(inner, s.block)
	r.land(inner, c, spans)
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
		switch {
		case l.known:
			r.farm.Lost(s.at, "range %s is for known clients: nodes of drover have fixed addresses", s.Range)
			continue
		case s.First.Is6():
			c.Range6 = s.Range
		default:
			c.Range = s.Range
			if !l.sure {
				no := false
				c.Authoritative = &no
			}
		}
		if l.pool != nil && len(l.scope.Options) > 0 {
			name, _ := r.farm.Tag("pool-" + s.First.String())
			r.farm.TagScope(name).Options = l.scope.Options
			c.Tags = []string{name}
		}
		r.farm.Taken(s.at, "a catch-all pool with range %s", s.Range)
		r.farm.CatchAll(c)
	}
}
