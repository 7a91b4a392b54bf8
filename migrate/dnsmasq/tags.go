package dnsmasq

import (
	"cmp"
	"slices"
	"strings"

	"drover/migrate"
	"drover/pools"
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
			tags = migrate.Union(tags, t.sets)
		}
	}
	return tags
}

// share is how many of the machines that the config does not name have a tag.
type share int

const (
	none share = iota - 1
	some       // those that send something, or come by an interface
	all
)

// clients are those of the machines that the config does not name which have a tag, or fulfil a
// condition. Some without matches are those that drover has no match for.
type clients struct {
	share
	matches []pools.Match
}

// and returns the clients that are of both.
func (c clients) and(other clients) clients {
	switch {
	case c.share == none || other.share == all:
		return c
	case other.share == none || c.share == all:
		return other
	case len(c.matches)*len(other.matches) > maxMatches:
		return clients{}
	}
	var both clients
	for _, x := range c.matches {
		for _, y := range other.matches {
			m, ok := join(x, y)
			if !ok {
				return clients{}
			}
			both.matches = append(both.matches, m)
		}
	}
	return both
}

// or returns the clients that are of one of them.
func (c clients) or(other clients) clients {
	switch {
	case c.share == all || other.share == none:
		return c
	case other.share == all || c.share == none:
		return other
	case len(c.matches) == 0 || len(other.matches) == 0:
		return clients{}
	}
	return clients{matches: migrate.Union(slices.Clone(c.matches), other.matches)}
}

// join returns the match of a client that both are of. ok is false if no match says that.
func join(x, y pools.Match) (m pools.Match, ok bool) {
	fields := func(m *pools.Match) []*string {
		return []*string{&m.Class, &m.UserClass, &m.ClientID, &m.CircuitID, &m.RemoteID, &m.SubscriberID}
	}
	for i, to := range fields(&x) {
		from := *fields(&y)[i]
		if *to != "" && from != "" && *to != from {
			return x, false
		}
		*to = cmp.Or(*to, from)
	}
	if !x.Arch.IsZero() && !y.Arch.IsZero() && x.Arch != y.Arch {
		return x, false
	}
	x.Arch = cmp.Or(x.Arch, y.Arch)
	return x, true
}

// settle follows tag-if: for the machines that the config does not name, and for tags that
// depend on what a client sends.
func (r *Reader) settle() {
	for _, t := range r.ifs {
		is := r.fulfil(t.when)
		for _, set := range t.sets {
			if old, ok := r.shares[set]; ok {
				r.shares[set] = old.or(is)
			} else {
				r.shares[set] = r.unsettled(set, false).or(is)
			}
		}
		if _, ok := r.known(t.when); ok && !slices.ContainsFunc(t.when, r.depends) {
			continue
		}
		for _, set := range t.sets {
			r.send(set, clients{matches: is.matches})
		}
	}
}

// send adds what a client sends to what sets a tag.
func (r *Reader) send(tag string, c clients) {
	if old, ok := r.sent[tag]; ok {
		c = old.or(c)
	}
	r.sent[tag] = c
}

// depends reports whether a tag, or with ! the lack of it, depends on what a client sends.
func (r *Reader) depends(tag string) bool {
	_, ok := r.sent[strings.TrimPrefix(tag, "!")]
	return ok
}

// clients returns those of the machines that the config does not name which have a tag, or with
// ! lack it. A tag that nothing sets may be that of an interface.
func (r *Reader) clients(tag string) clients {
	name, not := strings.CutPrefix(tag, "!")
	is, ok := r.shares[name]
	if !ok {
		is = r.unsettled(name, true)
		r.shares[name] = is
	}
	if not {
		return clients{share: -is.share}
	}
	return is
}

// unsettled returns the clients with a tag without tag-if. Behind a line that needs the tag, one
// may set it by what a client sends: then it is not known who has it.
func (r *Reader) unsettled(name string, behind bool) clients {
	sets := func(t tagIf) bool { return slices.Contains(t.sets, name) }
	hostSets := func(pattern bool) bool {
		return slices.ContainsFunc(r.hosts, func(h host) bool { return slices.Contains(h.sets, name) && h.isPattern() == pattern })
	}
	switch {
	case behind && slices.ContainsFunc(r.ifs, func(t tagIf) bool { return sets(t) && slices.ContainsFunc(t.when, r.depends) }):
		return clients{}
	case slices.Contains(r.Tags, name):
		return clients{share: all}
	case slices.ContainsFunc(r.macs, func(m macTag) bool { return m.tag == name }) || hostSets(true):
		return clients{}
	case r.depends(name):
		return r.sent[name]
	case name == "known" || name == "bootp" || hostSets(false) || slices.ContainsFunc(r.ifs, sets): // drover leases nothing by BOOTP
		return clients{share: none}
	}
	return clients{}
}

// fulfil returns the clients that fulfil a condition.
func (r *Reader) fulfil(c condition) clients {
	is := clients{share: all}
	for _, tag := range c {
		is = is.and(r.clients(tag))
	}
	return is
}

// known returns the tags of a condition that are known beforehand. ok is false if it depends on
// what a client sends; what one does not send is left to the options that depend on it.
func (r *Reader) known(c condition) (known condition, ok bool) {
	for _, t := range c {
		name, not := strings.CutPrefix(t, "!")
		switch {
		case slices.Contains(r.Tags, name) && !not:
		case !r.depends(name):
			known = append(known, t)
		case !not || len(r.sent[name].matches) == 0:
			return nil, false
		}
	}
	return known, true
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
		if known, ok := r.known(c.tags); ok && len(known) == len(c.tags) {
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
	for _, o := range r.options {
		if known, ok := r.known(o.tags); ok && len(known) > 0 {
			all = append(all, known)
		}
	}
	return all
}
