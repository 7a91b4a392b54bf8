package dnsmasq

import (
	"encoding/hex"
	"net/netip"
	"regexp"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

// host is the value of dhcp-host.
type host struct {
	at       pools.Origin
	macs     []string
	clientID string // as drover writes it
	sets     []string
	tags     []string // the entry is for clients with them
	ip, ip6  netip.Addr
	name     string
	lease    pools.Duration
	ignore   bool
}

// hardware is the form of a MAC, with a type in front or with * for some bytes.
var hardware = regexp.MustCompile(`^(\d\d?-)?[0-9a-fA-F*]{1,2}([:-][0-9a-fA-F*]{1,2}){5,19}$`)

// leaseTime is the form of a lease time.
var leaseTime = regexp.MustCompile(`^([0-9]+[smhdwSMHDW]?|infinite)$`)

func (r *Reader) dhcpHost(d directive) {
	h := host{at: d.at}
	for _, field := range d.fields {
		r.hostField(&h, field)
	}
	r.hosts = append(r.hosts, h)
}

func (r *Reader) hostField(h *host, field string) {
	kind, rest, _ := strings.Cut(field, ":")
	a, err := netip.ParseAddr(field)
	switch {
	case field == "":
	case kind == "set" || kind == "net":
		h.sets = append(h.sets, rest)
	case kind == "tag":
		h.tags = append(h.tags, tagOf(rest))
	case kind == "id" && rest == "*":
		r.farm.Itself(h.at, "id:*: drover knows a machine by its MAC, whatever its client identifier")
	case kind == "id":
		h.clientID = ClientID(rest)
	case strings.HasPrefix(field, "["):
		r.address6(h, field)
	case err == nil && (a.Is4() && h.ip.IsValid() || a.Is6() && h.ip6.IsValid()):
		r.farm.Lost(h.at, "address %s: a node has one address of each family", a)
	case err == nil && a.Is4():
		h.ip = a
	case err == nil:
		h.ip6 = a
	case hardware.MatchString(field):
		h.macs = append(h.macs, field)
	case field == "ignore":
		h.ignore = true
	case leaseTime.MatchString(field):
		h.lease, _ = ParseLease(field)
	case h.name != "":
		r.farm.Unknown(h.at, "%q is a second name, beside %q", field, h.name)
	default:
		h.name = field
	}
}

// address6 reads an IPv6 address in brackets.
func (r *Reader) address6(h *host, field string) {
	a, err := netip.ParseAddr(strings.Trim(field, "[]"))
	if err != nil || !strings.HasSuffix(field, "]") {
		r.farm.Unknown(h.at, "%q is no IPv6 address of one machine", field)
		return
	}
	if h.ip6.IsValid() {
		r.farm.Lost(h.at, "address %s: a node has one address of each family", a)
		return
	}
	h.ip6 = a
}

// whole6 returns the IPv6 address of a host. One without a network, [::10], is in the first
// network of IPv6.
func (r *Reader) whole6(h host) netip.Addr {
	b := h.ip6.As16()
	if !h.ip6.IsValid() || [8]byte(b[:8]) != [8]byte{} {
		return h.ip6
	}
	for _, n := range r.farm.Networks() {
		if n.Prefix.Addr().Is6() && n.Prefix.Bits() <= 64 {
			net := n.Prefix.Addr().As16()
			copy(b[:8], net[:8])
			r.farm.Taken(h.at, "pools[].nodes[].ip6", netip.AddrFrom16(b))
			return netip.AddrFrom16(b)
		}
	}
	r.farm.Lost(h.at, "address [%s] is the end of one, and no IPv6 network is named (name it with --subnet)", h.ip6)
	return netip.Addr{}
}

// ClientID returns a client identifier as drover writes it: bytes in hex, or a text.
func ClientID(text string) string {
	if b, ok := hexBytes(text); ok {
		return migrate.Octets(b)
	}
	return text
}

// hexBytes reads bytes such as 01:0a:ff.
func hexBytes(text string) ([]byte, bool) {
	if !strings.Contains(text, ":") {
		return nil, false
	}
	parts := strings.Split(text, ":")
	for i, p := range parts {
		if len(p) == 1 {
			parts[i] = "0" + p
		}
		if len(parts[i]) != 2 {
			return nil, false
		}
	}
	b, err := hex.DecodeString(strings.Join(parts, ""))
	return b, err == nil
}

// add adds the hosts to the farm.
func (r *Reader) addHosts() {
	for _, h := range r.hosts {
		if len(h.tags) > 0 && !h.ignore { // one that is ignored there at times is so here always
			r.farm.LeftOut(h.at, "the entry is only for clients with tag %s: drover has one entry for a machine", strings.Join(h.tags, ", "))
			continue
		}
		if h.isPattern() {
			r.pattern(h)
			continue
		}
		if h.ignore && len(h.macs) == 0 && h.clientID == "" {
			r.farm.Close(h.at, "dhcp-host="+h.name+",ignore")
			continue
		}
		m := migrate.Machine{At: h.at, Pool: r.Pool, Hardware: h.macs}
		m.Name, m.IP, m.IP6, m.Ignore, m.Lease = h.name, h.ip, r.whole6(h), h.ignore, h.lease
		if len(h.macs) == 0 {
			m.Match.ClientID = h.clientID
		} else if h.clientID != "" {
			r.farm.Lost(h.at, "the client identifier beside the MAC: drover knows the machine by its MAC")
		}
		if h.name != "" && len(h.macs) == 0 && h.clientID == "" {
			r.farm.LeftOut(h.at, "machine %s is known by the name alone that it sends (give its MAC)", h.name)
			continue
		}
		r.tagHost(&m, h)
		r.farm.Add(m)
	}
}

// isPattern reports whether the host stands for many, by * in its MACs.
func (h host) isPattern() bool { return strings.ContainsRune(strings.Join(h.macs, ""), '*') }

// pattern notes a host that stands for many: its tags count, but it is no machine.
func (r *Reader) pattern(h host) {
	if h.ignore {
		r.farm.Close(h.at, "dhcp-host="+h.macs[0]+",ignore")
		return
	}
	if h.ip.IsValid() || h.name != "" {
		r.farm.LeftOut(h.at, "MACs with * are no machine of drover (a pool has match, a node has its MACs)")
		return
	}
	r.farm.NotTaken(h.at, "MACs with * are no match of a pool; nodes whose MACs fit get the options of the tag")
	for _, set := range h.sets {
		r.macs = append(r.macs, macTag{h.at, set, strings.ToLower(h.macs[0])})
	}
}
