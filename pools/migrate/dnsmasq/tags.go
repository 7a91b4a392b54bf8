package dnsmasq

import (
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

// condition is a list of tags that a client must have, or with ! must not have.
type condition []string

// holds reports whether a client with these tags fulfils the condition.
func (c condition) holds(tags []string) bool {
	for _, t := range c {
		name, not := strings.CutPrefix(t, "!")
		if slices.Contains(tags, name) == not {
			return false
		}
	}
	return true
}

// name returns the name of the drover tag for the condition.
func (c condition) name() string {
	return migrate.TagName(strings.ReplaceAll(strings.Join(c, "-and-"), "!", "not-"))
}

// tagIf sets tags where others are set.
type tagIf struct {
	sets []string
	when condition
}

// macTag sets a tag by a pattern of MACs.
type macTag struct {
	at      pools.Origin
	tag     string
	pattern string // 00:60:8c:*:*:*
}

func (m macTag) matches(mac pools.MAC) bool {
	have, want := strings.Split(mac.String(), ":"), strings.Split(m.pattern, ":")
	for i, w := range want {
		if i >= len(have) || w != "*" && w != have[i] && "0"+w != have[i] {
			return false
		}
	}
	return len(want) == len(have)
}

// tagOf returns a tag of a condition. dnsmasq reads # as !, which is its old spelling.
func tagOf(text string) string {
	if rest, old := strings.CutPrefix(text, "#"); old {
		return "!" + rest
	}
	return text
}

func isNegated(tag string) bool { return strings.HasPrefix(tag, "!") }

// splitTags splits leading tag: and net: values from the others.
func splitTags(fields []string) (tags condition, rest []string) {
	for i, f := range fields {
		kind, tag, _ := strings.Cut(f, ":")
		if kind != "tag" && kind != "net" {
			return tags, fields[i:]
		}
		tags = append(tags, tagOf(tag))
	}
	return tags, nil
}

func (r *Reader) tagIf(d directive) {
	var t tagIf
	for _, f := range d.fields {
		kind, tag, _ := strings.Cut(f, ":")
		switch kind {
		case "set":
			t.sets = append(t.sets, tag)
		case "tag":
			t.when = append(t.when, tagOf(tag))
		default:
			r.farm.Unknown(d.at, "%q is neither set: nor tag:", f)
			return
		}
	}
	r.ifs = append(r.ifs, t)
	r.farm.Itself(d.at, "it is followed for the tags that are known beforehand, and for the match of a range")
}

// closure returns tags with those that tag-if adds. dnsmasq runs its lines once, in order.
func (r *Reader) closure(tags []string) []string {
	for _, t := range r.ifs {
		if t.when.holds(tags) {
			tags = union(tags, t.sets)
		}
	}
	return tags
}

func union(tags, more []string) []string {
	for _, tag := range more {
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// settle follows tag-if for tags that depend on what a client sends: what they set depends
// on it too.
func (r *Reader) settle() {
	for _, t := range r.ifs {
		known, matches, ok := r.sent(t.when)
		ok = ok && !slices.ContainsFunc(t.when, func(tag string) bool { return isNegated(tag) && len(r.matches[tag[1:]]) > 0 })
		for _, set := range t.sets {
			if !ok || len(matches) > 0 && len(known) > 0 {
				r.strange[set] = true
				continue
			}
			for _, m := range matches {
				if !slices.Contains(r.matches[set], m) {
					r.matches[set] = append(r.matches[set], m)
				}
			}
		}
	}
}

// share is how many of the machines that the config does not name have a tag.
type share int

const (
	none share = iota - 1
	some       // those that send something, or come by an interface
	all
)

// settleShares follows tag-if for the machines that the config does not name.
func (r *Reader) settleShares() {
	r.shares = map[string]share{}
	for _, t := range r.ifs {
		is := r.unknownAll(t.when)
		for _, set := range t.sets {
			r.shares[set] = max(r.unknown(set), is)
		}
	}
}

// unknown returns how many of the machines that the config does not name have a tag, or with
// ! lack it. A tag that nothing sets may be that of an interface.
func (r *Reader) unknown(tag string) share {
	name, not := strings.CutPrefix(tag, "!")
	is, ok := r.shares[name]
	if !ok {
		is = r.unsettled(name)
		r.shares[name] = is
	}
	if not {
		return -is
	}
	return is
}

// unsettled returns the share of a tag without tag-if.
func (r *Reader) unsettled(name string) share {
	switch {
	case slices.Contains(r.Tags, name):
		return all
	case r.strange[name] || len(r.matches[name]) > 0 || slices.ContainsFunc(r.macs, func(m macTag) bool { return m.tag == name }):
		return some
	case name == "known" || name == "bootp": // drover leases nothing by BOOTP
		return none
	case slices.ContainsFunc(r.hosts, func(h host) bool { return slices.Contains(h.sets, name) && !h.isPattern() }):
		return none
	case slices.ContainsFunc(r.ifs, func(t tagIf) bool { return slices.Contains(t.sets, name) }):
		return none
	}
	return some
}

// unknownAll returns how many of the machines that the config does not name fulfil a condition.
func (r *Reader) unknownAll(c condition) share {
	is := all
	for _, tag := range c {
		is = min(is, r.unknown(tag))
	}
	return is
}

// sentAlone returns the matches of what a client must send for a condition. ok is false if it
// depends on something that drover has no match for.
func (r *Reader) sentAlone(c condition) (matches []pools.Match, ok bool) {
	for _, tag := range c {
		if r.unknown(tag) == some && (isNegated(tag) || len(r.matches[tag]) == 0) {
			return nil, false
		}
	}
	_, matches, ok = r.sent(c)
	return matches, ok
}

// sent splits a condition into the tags that are known beforehand and those that depend on
// what a client sends. ok is false if drover has no match for one of these.
func (r *Reader) sent(c condition) (known condition, matches []pools.Match, ok bool) {
	ok = true
	for _, t := range c {
		name, not := strings.CutPrefix(t, "!")
		switch {
		case slices.Contains(r.Tags, name) && !not:
		case r.strange[name]:
			ok = false
		case len(r.matches[name]) == 0:
			known = append(known, t)
		case not:
			continue // a rule without conditions comes before those with some
		case len(matches) > 0:
			var few bool
			matches, few = both(matches, r.matches[name])
			ok = ok && few
		default:
			matches = r.matches[name]
		}
	}
	return known, matches, ok
}

// tagHost gives a machine the tags of the conditions that it fulfils.
func (r *Reader) tagHost(m *migrate.Machine, h host) {
	tags := slices.Concat(r.Tags, h.sets, []string{"known"})
	for _, rg := range r.ranges {
		if p, _ := rg.Network(); rg.Set != "" && m.IP.IsValid() && p.Contains(m.IP) {
			tags = append(tags, rg.Set)
		}
	}
	for _, t := range r.macs {
		for _, text := range h.Hardware {
			if mac, err := migrate.ParseHardware(text); err == nil && t.matches(mac) {
				tags = append(tags, t.tag)
			}
		}
	}
	tags = r.closure(tags)
	m.Tags = append(m.Tags, r.chosen(tags)...)
	for _, c := range r.ignores {
		if known, matches, ok := r.sent(c.tags); ok && len(matches) == 0 && len(known) == len(c.tags) {
			m.Ignore = m.Ignore || known.holds(tags)
		}
	}
}

// chosen returns the names of the drover tags for a client with these tags, in the order of
// the config: later ones win there as here.
func (r *Reader) chosen(tags []string) (names []string) {
	for _, c := range r.conds {
		if c.holds(tags) && !slices.Contains(names, c.name()) {
			names = append(names, c.name())
		}
	}
	for _, tag := range r.Keep {
		if name := migrate.TagName(tag); slices.Contains(tags, tag) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// conditions returns those of the options that are known beforehand.
func (r *Reader) conditions() (all []condition) {
	add := func(c condition) {
		if known, _, ok := r.sent(c); ok && len(known) > 0 {
			all = append(all, known)
		}
	}
	for _, o := range r.options {
		add(o.tags)
	}
	return all
}
