package dnsmasq

import (
	"net/netip"
	"regexp"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// host is the value of dhcp-host: a machine, or what many have.
type host struct {
	migrate.Machine
	sets []string
	tags []string // the entry is for clients with them
}

// hardware is the form of a MAC, with a type in front or with * for some bytes.
var hardware = regexp.MustCompile(`^(\d\d?-)?[0-9a-fA-F*]{1,2}([:-][0-9a-fA-F*]{1,2}){5,19}$`)

// leaseTime is the form of a lease time.
var leaseTime = regexp.MustCompile(`^([0-9]+[smhdwSMHDW]?|infinite)$`)

func (r *Reader) dhcpHost(d directive) {
	h := host{Machine: migrate.Machine{At: d.at, Pool: r.Pool}}
	for _, field := range d.fields {
		r.hostField(&h, field)
	}
	r.hosts = append(r.hosts, h)
}

func (r *Reader) hostField(h *host, field string) {
	kind, rest, _ := strings.Cut(field, ":")
	a, err := netip.ParseAddr(strings.Trim(field, "[]"))
	switch {
	case field == "":
	case kind == "set" || kind == "net":
		h.sets = append(h.sets, rest)
	case kind == "tag":
		h.tags = append(h.tags, tagOf(rest))
	case kind == "id" && rest == "*":
		r.farm.Itself(h.At, "id:*: drover knows a machine by its MAC, whatever its client identifier")
	case kind == "id":
		h.Match.ClientID = ClientID(rest)
	case err == nil:
		r.farm.Addresses(&h.Machine, h.At, []string{a.String()})
	case strings.HasPrefix(field, "["):
		r.farm.Unknown(h.At, "%q is no IPv6 address of one machine", field)
	case hardware.MatchString(field):
		h.Hardware = append(h.Hardware, field)
	case field == "ignore":
		h.Ignore = true
	case leaseTime.MatchString(field):
		h.Lease, _ = ParseLease(field)
	case h.Name != "":
		r.farm.Unknown(h.At, "%q is a second name, beside %q", field, h.Name)
	default:
		h.Name = field
	}
}

// whole6 returns the IPv6 address of a host. One without a network, [::10], is in the first
// network of IPv6.
func (r *Reader) whole6(h host) netip.Addr {
	b := h.IP6.As16()
	if !h.IP6.IsValid() || [8]byte(b[:8]) != [8]byte{} {
		return h.IP6
	}
	for _, n := range r.farm.Networks() {
		if n.Prefix.Addr().Is6() && n.Prefix.Bits() <= 64 {
			net := n.Prefix.Addr().As16()
			copy(b[:8], net[:8])
			r.farm.Taken(h.At, "pools[].nodes[].ip6", netip.AddrFrom16(b))
			return netip.AddrFrom16(b)
		}
	}
	r.farm.Lost(h.At, "address [%s] is the end of one, and no IPv6 network is named (name it with --subnet)", h.IP6)
	return netip.Addr{}
}

// ClientID returns a client identifier as drover writes it: bytes in hex, or a text.
func ClientID(text string) string {
	if b, ok := migrate.Bytes(text); ok {
		return migrate.Octets(b)
	}
	return text
}

// addHosts adds the hosts to the farm.
func (r *Reader) addHosts() {
	for _, h := range r.hosts {
		m := h.Machine
		named := len(m.Hardware) == 0 && m.Match.ClientID == "" // by its name alone
		switch {
		case len(h.tags) > 0 && !m.Ignore: // one that is ignored there at times is so here always
			r.farm.LeftOut(h.At, "the entry is only for clients with tag %s: drover has one entry for a machine", strings.Join(h.tags, ", "))
		case h.isPattern():
			r.pattern(h)
		case named && m.Ignore:
			r.farm.Close(h.At, "dhcp-host="+h.Name+",ignore")
		case named && m.Name != "":
			r.farm.LeftOut(h.At, "machine %s is known by the name alone that it sends (give its MAC)", h.Name)
		default:
			m.IP6 = r.whole6(h)
			r.tagHost(&m, h)
			r.farm.Add(m)
		}
	}
}

// isPattern reports whether the host stands for many, by * in its MACs.
func (h host) isPattern() bool { return strings.ContainsRune(strings.Join(h.Hardware, ""), '*') }

// pattern notes a host that stands for many: its tags count, but it is no machine.
func (r *Reader) pattern(h host) {
	switch {
	case h.Ignore:
		r.farm.Close(h.At, "dhcp-host="+h.Hardware[0]+",ignore")
	case h.IP.IsValid() || h.Name != "":
		r.farm.LeftOut(h.At, "MACs with * are no machine of drover (a pool has match, a node has its MACs)")
	default:
		for _, set := range h.sets {
			r.addMAC(h.At, set, h.Hardware[0])
		}
	}
}

// addMAC adds a tag of the machines whose MACs fit a pattern.
func (r *Reader) addMAC(at pools.Origin, tag, pattern string) {
	r.farm.NotTaken(at, "MACs with * are no match of a pool; nodes whose MACs fit get the options of the tag")
	r.macs = append(r.macs, macTag{tag, strings.ToLower(pattern)})
}
