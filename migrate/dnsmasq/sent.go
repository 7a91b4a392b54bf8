package dnsmasq

import (
	"cmp"
	"slices"
	"strings"

	"drover/pools"
)

// dhcpBoot notes a boot file, and the server that has it.
func (r *Reader) dhcpBoot(d directive) {
	_, fields := splitTags(d.fields)
	if len(fields) > 0 {
		r.farm.BootFile(d.at, strings.Join(fields, ","))
	}
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
	o, ok := optionOf(d.fields[1])
	code := o.Code
	var m pools.Match
	switch {
	case !ok:
		r.send(tag, clients{})
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
		r.send(tag, clients{})
		r.farm.Lost(d.at, "drover matches options 60, 61, 77, 82, 93, 97 and 175: what depends on tag %q is left", tag)
		return
	}
	r.sets(d.at, tag, m)
}

// sets records a tag that depends on what a client sends.
func (r *Reader) sets(at pools.Origin, tag string, m pools.Match) {
	r.send(tag, clients{matches: []pools.Match{m}})
	r.sends = append(r.sends, sending{at, tag, m})
}

// sending is what sets a tag.
type sending struct {
	at  pools.Origin
	tag string
	m   pools.Match
}

// noteSent notes what became of the matches.
func (r *Reader) noteSent() {
	for _, s := range r.sends {
		m := s.m
		value := cmp.Or(m.ClientID, m.CircuitID, m.RemoteID, m.SubscriberID, m.Class, m.UserClass, m.Arch.String())
		if slices.Contains(r.used, m) {
			r.farm.Taken(s.at, "pools; a match", value)
		} else {
			r.farm.NotTaken(s.at, "no range is for tag %q alone: the match of a pool is what a client sends", s.tag)
		}
	}
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
	id = ClientID(id)
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
	r.addMAC(d.at, strings.TrimPrefix(d.fields[0], "set:"), d.fields[1])
}

// maxMatches bounds the matches of a condition.
const maxMatches = 16

// addOptions adds the options to the farm.
func (r *Reader) addOptions() {
	for _, o := range r.options {
		known, ok := r.known(o.tags)
		switch {
		case o.server:
			r.farm.BootServer(o.At, strings.Join(o.Values, ""))
		case !ok && !o.IsBoot():
			r.farm.NotTaken(o.At, "it depends on what the client sends (%s): drover has options by node, network, pool and tag; for unknown machines a pool with match", strings.Join(o.tags, ", "))
		default:
			scope := &r.farm.Global
			if len(known) > 0 {
				scope = r.farm.TagScope(known.name())
			}
			r.farm.Set(scope, o.Option)
		}
	}
}
