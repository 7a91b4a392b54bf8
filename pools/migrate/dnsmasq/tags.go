package dnsmasq

import (
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
	"drover/pools/migrate/classes"
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

// splitTags splits leading tag: and net: values from the others.
func splitTags(fields []string) (tags condition, rest []string) {
	for i, f := range fields {
		kind, tag, _ := strings.Cut(f, ":")
		if kind != "tag" && kind != "net" {
			return tags, fields[i:]
		}
		tags = append(tags, tag)
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
			t.when = append(t.when, tag)
		default:
			r.farm.Unknown(d.at, "%q is neither set: nor tag:", f)
			return
		}
	}
	r.ifs = append(r.ifs, t)
}

// closure returns tags with those that tag-if adds.
func (r *Reader) closure(tags []string) []string {
	for range r.ifs { // each round may set what another one needs
		for _, t := range r.ifs {
			if !t.when.holds(tags) {
				continue
			}
			for _, set := range t.sets {
				if !slices.Contains(tags, set) {
					tags = append(tags, set)
				}
			}
		}
	}
	return tags
}

// settle follows tag-if for tags that depend on what a client sends: what they set depends
// on it too.
func (r *Reader) settle() {
	for range r.ifs {
		for _, t := range r.ifs {
			for _, when := range t.when {
				name := strings.TrimPrefix(when, "!")
				for _, set := range t.sets {
					if len(r.matches[name]) > 0 && len(r.matches[set]) == 0 && when == name {
						r.matches[set] = r.matches[name]
					} else if r.strange[name] {
						r.strange[set] = true
					}
				}
			}
		}
	}
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
			matches, few = classes.Both(matches, r.matches[name])
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
		for _, text := range h.macs {
			if mac, err := migrate.ParseHardware(text); err == nil && t.matches(mac) {
				tags = append(tags, t.tag)
			}
		}
	}
	tags = r.closure(tags)
	m.Tags = append(m.Tags, r.chosen(tags)...)
	for _, c := range r.ignores {
		m.Ignore = m.Ignore || len(c) > 0 && c.holds(tags)
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

// conditions returns those of the options and boot files that are known beforehand.
func (r *Reader) conditions() (all []condition) {
	add := func(c condition) {
		if known, _, ok := r.sent(c); ok && len(known) > 0 {
			all = append(all, known)
		}
	}
	for _, o := range r.options {
		add(o.tags)
	}
	for _, b := range r.boots {
		add(b.tags)
	}
	return all
}
