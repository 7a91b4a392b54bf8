package dnsmasq

import (
	"net/netip"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

// bootFile is the value of dhcp-boot.
type bootFile struct {
	at     pools.Origin
	tags   condition
	file   string
	server netip.Addr
}

func (r *Reader) dhcpBoot(d directive) {
	tags, fields := splitTags(d.fields)
	b := bootFile{at: d.at, tags: tags}
	for i, f := range fields {
		switch a, err := netip.ParseAddr(f); {
		case i == 0:
			b.file = f
		case err == nil:
			b.server = a
		case f != "" && i == 2:
			r.farm.Lost(d.at, "boot server %q is a name: drover needs its address (server: in the rule of loaders)", f)
		}
	}
	r.boots = append(r.boots, b)
}

// iPXE is the user class of iPXE.
const iPXE = "iPXE"

// dhcpMatch reads what sets a tag by an option that the client sends.
func (r *Reader) dhcpMatch(d directive) {
	if len(d.fields) < 2 {
		r.farm.Unknown(d.at, "want set:TAG,OPTION[,VALUE]")
		return
	}
	tag := strings.TrimPrefix(d.fields[0], "set:")
	value := strings.Join(d.fields[2:], ",")
	code, _, ok := codeOf(d.fields[1])
	var m pools.Match
	switch {
	case !ok:
		r.strange[tag] = true
		r.farm.Unknown(d.at, "unknown DHCP option %q", d.fields[1])
		return
	case code == 93 && m.Arch.UnmarshalText([]byte(value)) == nil:
	case code == 175, code == 77 && value == iPXE, code == 17 && value == "39": // kubefarm's matcher lacks a digit
		m.UserClass = iPXE
	case code == 77 && value != "":
		m.UserClass = value
	case code == 60 && value != "":
		m.Class = value + "*"
	case code == 61 && value != "":
		m.ClientID = ClientID(value)
	default:
		r.strange[tag] = true
		r.farm.Lost(d.at, "drover matches options 60, 61, 77, 82, 93, 97 and 175: what depends on tag %q is left", tag)
		return
	}
	r.sets(d.at, tag, m)
}

// sets records a tag that depends on what a client sends.
func (r *Reader) sets(at pools.Origin, tag string, m pools.Match) {
	r.matches[tag] = append(r.matches[tag], m)
	r.farm.Taken(at, "a match, where tag %q is used", tag)
}

// dhcpClass reads dhcp-vendorclass and dhcp-userclass: a part of the class is enough.
func (r *Reader) dhcpClass(d directive) {
	if len(d.fields) < 2 {
		r.farm.Unknown(d.at, "want set:TAG,CLASS")
		return
	}
	tag, class := strings.TrimPrefix(d.fields[0], "set:"), d.fields[len(d.fields)-1]
	m := pools.Match{Class: "*" + class + "*"}
	if d.key == "dhcp-userclass" {
		m = pools.Match{UserClass: "*" + class + "*"}
		if class == iPXE {
			m.UserClass = iPXE
		}
	}
	r.sets(d.at, tag, m)
}

// relayed reads dhcp-circuitid, dhcp-remoteid and dhcp-subscrid.
func (r *Reader) relayed(d directive) {
	if len(d.fields) < 2 {
		r.farm.Unknown(d.at, "want set:TAG,IDENTIFIER")
		return
	}
	tag, id := strings.TrimPrefix(d.fields[0], "set:"), strings.Join(d.fields[1:], ",")
	if b, ok := hexBytes(id); ok {
		id = migrate.Octets(b)
	}
	m := pools.Match{CircuitID: id}
	switch d.key {
	case "dhcp-remoteid":
		m = pools.Match{RemoteID: id}
	case "dhcp-subscrid":
		m = pools.Match{SubscriberID: id}
	}
	r.sets(d.at, tag, m)
}

func (r *Reader) dhcpMAC(d directive) {
	if len(d.fields) != 2 || !hardware.MatchString(d.fields[1]) {
		r.farm.Unknown(d.at, "want set:TAG,MAC, with * for bytes")
		return
	}
	r.macs = append(r.macs, macTag{d.at, strings.TrimPrefix(d.fields[0], "set:"), strings.ToLower(d.fields[1])})
	r.farm.Taken(d.at, "tags of the machines whose MACs fit")
}

// addBoots adds the boot files to the farm.
func (r *Reader) addBoots() {
	for _, b := range r.boots {
		known, matches, ok := r.sent(b.tags)
		if !ok {
			r.farm.Lost(b.at, "boot file %q depends on a tag that drover has no match for", b.file)
			continue
		}
		scope := r.scope(known)
		if len(matches) == 0 {
			r.farm.SetBoot(scope, b.at, b.file, b.server)
		}
		for _, m := range matches {
			r.farm.Loader(scope, b.at, pools.LoaderRule{Arch: m.Arch, Class: m.Class, UserClass: m.UserClass, Loader: b.file, Server: b.server})
		}
	}
}

// scope returns the place in the farm of what has a condition.
func (r *Reader) scope(known condition) *migrate.Scope {
	if len(known) == 0 {
		return r.base()
	}
	return r.farm.TagScope(known.name())
}

// base returns the place of options for all clients of this dnsmasq.
func (r *Reader) base() *migrate.Scope { return &r.farm.Global }

// addOptions adds the options to the farm.
func (r *Reader) addOptions() {
	for _, o := range r.options {
		known, matches, ok := r.sent(o.tags)
		isBoot := o.Part == "" && (o.Code == 67 || o.Code == 66 || o.server)
		switch {
		case !ok || len(matches) > 0 && !isBoot:
			r.farm.Lost(o.At, "it depends on what the client sends (%s): drover has options by node, network, pool and tag; for unknown machines a pool with match", strings.Join(o.tags, ", "))
		case o.server:
			a, _ := netip.ParseAddr(strings.Join(o.Values, ""))
			r.farm.SetBoot(r.scope(known), o.At, "", a)
		case len(matches) > 0 && o.Code == 66:
			r.farm.Lost(o.At, "the boot server of a kind of client (server: in a rule of loaders)")
		case len(matches) > 0:
			for _, m := range matches {
				r.farm.Loader(r.scope(known), o.At, pools.LoaderRule{Arch: m.Arch, Class: m.Class, UserClass: m.UserClass, Loader: strings.Join(o.Values, "")})
			}
		default:
			r.farm.Set(r.scope(known), o.Option)
		}
	}
}
