package declared

import (
	"maps"
	"slices"

	"drover/pools/config/mistake"
)

// maxChecks bounds how often a farm is checked for one choice. A wrong change that no mistake
// names takes two checks for each time that the number of changes can be halved. The changes
// that are left then are refused.
const maxChecks = 500

// picker holds the version of each object that is tried. A change of an object is its newest
// version in place of the picked one, or its deletion.
type picker struct {
	check               func([]*Object) error
	desired, last, pick map[Key]*Object
	wrong               map[Key]mistake.Errors // of the changes that were refused
	refused             map[Key]bool           // in this pass
	checks              int
}

// try checks the versions that are picked.
func (p *picker) try() error {
	p.checks++
	return p.check(slices.SortedFunc(maps.Values(p.pick), compare))
}

// dropInvalid leaves out objects that were valid before, and are so no more with the config
// file.
func (p *picker) dropInvalid() error {
	for {
		err := p.try()
		if err == nil {
			return nil
		}
		before := len(p.pick)
		for _, e := range mistakesOf(err) {
			if keys := p.named(e); len(keys) > 0 {
				delete(p.pick, keys[0])
			}
		}
		if len(p.pick) == before {
			return err
		}
	}
}

// pending returns the changes that are not made, in the order in which they are tried: of
// objects that others refer to first, and deletions of those last.
func (p *picker) pending() (changes, deletions []Key) {
	for k, o := range p.desired {
		if !o.Same(p.pick[k]) {
			changes = append(changes, k)
		}
	}
	for k := range p.pick {
		if p.desired[k] == nil {
			deletions = append(deletions, k)
		}
	}
	slices.SortFunc(changes, compareKeys)
	slices.SortFunc(deletions, func(a, b Key) int { return compareKeys(b, a) })
	return changes, deletions
}

// isPending reports whether there is a change of an object that is neither made nor refused.
func (p *picker) isPending(k Key) bool {
	d, o := p.desired[k], p.pick[k]
	return !p.refused[k] && d != o && (d == nil || !d.Same(o))
}

// pass tries all changes that are not made, and reports whether some are made now and some are
// left. Objects of a kind are tried together, after those of the kinds that they refer to: a
// mistake of one that names no other is then its own.
func (p *picker) pass() bool {
	p.refused = map[Key]bool{}
	changes, deletions := p.pending()
	before := len(changes) + len(deletions)
	for rest := changes; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(k Key) bool { return k.Kind != rest[0].Kind })
		if n < 0 {
			n = len(rest)
		}
		p.add(rest[:n])
		rest = rest[n:]
	}
	p.add(deletions)
	changes, deletions = p.pending()
	left := len(changes) + len(deletions)
	return left > 0 && left < before && p.checks < maxChecks
}

// add makes a group of changes, all of them or those that fit.
func (p *picker) add(group []Key) {
	group = slices.DeleteFunc(slices.Clone(group), func(k Key) bool { return !p.isPending(k) }) // some were made with others
	a := attempt{picker: p, group: group, tried: map[Key]bool{}}
	for len(a.group) > 0 && a.step() {
	}
	if len(a.later) > 0 {
		p.add(a.later)
	}
}

// refuse leaves a change out, and notes why.
func (p *picker) refuse(k Key, errs mistake.Errors) {
	p.refused[k], p.wrong[k] = true, errs
}

// attempt is the search for the changes of a group that fit.
type attempt struct {
	picker   *picker
	group    []Key
	partners []Key        // changes of other objects, without which the group does not fit
	tried    map[Key]bool // all partners there were
	later    []Key        // in conflict with others of the group
}

// step checks the group. It reports whether a smaller one, or one with more partners, is to be
// checked next.
func (a *attempt) step() bool {
	undo := a.picker.apply(slices.Concat(a.group, a.partners))
	err := a.picker.try()
	if err == nil {
		return false
	}
	f := a.find(err)
	undo()
	switch {
	case a.picker.checks >= maxChecks || len(mistakesOf(err)) == 0:
		for _, k := range slices.Concat(a.group, a.later) {
			a.picker.refuse(k, words(err))
		}
		a.group, a.later = nil, nil
	case len(f.own) > 0 && len(a.partners) > 0:
		a.leavePartners(f.own)
	case len(f.own) > 0:
		for k, errs := range f.own {
			a.picker.refuse(k, errs)
		}
		a.group = without(a.group, func(k Key) bool { return f.own[k] != nil })
	case len(f.unfit) > 0:
		a.partners = without(a.partners, func(k Key) bool { return f.unfit[k] })
	case len(f.twice) > 0:
		a.later = append(a.later, without(a.group, func(k Key) bool { return !f.twice[k] })...)
		a.group = without(a.group, func(k Key) bool { return f.twice[k] })
	case len(f.partners) > 0:
		a.partners = slices.AppendSeq(a.partners, maps.Keys(f.partners))
		maps.Copy(a.tried, f.partners)
	case len(a.partners) > 0 && a.search(a.partners, nil):
		a.partners = nil
	default: // no mistake says which it is
		a.search(a.partners, a.group)
		a.group = without(a.group, func(k Key) bool { return a.picker.refused[k] })
	}
	return true
}

// leavePartners has changes tried without the partners of the group, which may be the cause of
// their mistakes.
func (a *attempt) leavePartners(own map[Key]mistake.Errors) {
	switch n := len(a.group); {
	case len(own) < n:
		a.later = append(a.later, without(a.group, func(k Key) bool { return own[k] == nil })...)
		a.group = without(a.group, func(k Key) bool { return own[k] != nil })
	case n == 1:
		a.partners = nil
	default:
		a.picker.add(a.group[:n/2])
		a.picker.add(a.group[n/2:])
		a.group = nil
	}
}

// search refuses those changes of some that bring mistakes which name no change, one by one.
// Other changes, made, are those without such mistakes. It reports whether there were any.
func (a *attempt) search(made, some []Key) (found bool) {
	all := slices.Concat(made, some)
	undo := a.picker.apply(all)
	err := a.picker.try()
	f := a.find(err)
	undo()
	switch n := len(some); {
	case len(f.nameless) == 0:
		return false
	case n <= 1 || a.picker.checks >= maxChecks:
		for _, k := range some {
			a.picker.refuse(k, f.nameless)
		}
	default:
		a.search(made, some[:n/2])
		made = without(all[:len(made)+n/2], func(k Key) bool { return a.picker.refused[k] })
		a.search(made, some[n/2:])
	}
	return true
}

func without(all []Key, gone func(Key) bool) []Key {
	return slices.DeleteFunc(slices.Clone(all), gone)
}

// apply makes changes.
func (p *picker) apply(changes []Key) (undo func()) {
	before := map[Key]*Object{}
	for _, k := range changes {
		before[k] = p.pick[k]
		p.put(k, p.desired[k])
	}
	return func() {
		for k, o := range before {
			p.put(k, o)
		}
	}
}

// put picks a version of an object; nil: none.
func (p *picker) put(k Key, o *Object) {
	if p.pick[k] = o; o == nil {
		delete(p.pick, k)
	}
}

// finding is what the mistakes of a group say.
type finding struct {
	own      map[Key]mistake.Errors // changes of the group with mistakes that name no other change
	twice    map[Key]bool           // in conflict with a change of the group that is in neither map
	unfit    map[Key]bool           // partners with mistakes
	partners map[Key]bool           // other changes of objects that mistakes name
	nameless mistake.Errors         // the first mistakes that name no change
}

// find sorts the mistakes of a group by what is to be done about them.
func (a *attempt) find(err error) finding {
	f := finding{own: map[Key]mistake.Errors{}, twice: map[Key]bool{}, unfit: map[Key]bool{}, partners: map[Key]bool{}}
	member, partner := setOf(a.group), setOf(a.partners)
	for _, e := range mistakesOf(err) {
		var members, partners, others []Key
		for _, k := range a.picker.named(e) {
			switch {
			case member[k]:
				members = append(members, k)
			case partner[k]:
				partners = append(partners, k)
			case a.picker.isPending(k) && !a.tried[k]:
				others = append(others, k)
			}
		}
		switch {
		case len(others) > 0:
			for _, k := range others {
				f.partners[k] = true
			}
		case len(partners) > 0:
			for _, k := range partners {
				f.unfit[k] = true
			}
		case len(members) == 2:
			f.twice[members[0]] = f.twice[members[0]] || !f.twice[members[1]]
		case len(members) == 1:
			if k := members[0]; len(f.own[k]) < maxWords {
				f.own[k] = append(f.own[k], e)
			}
		case len(f.nameless) < maxWords:
			f.nameless = append(f.nameless, e)
		}
	}
	maps.DeleteFunc(f.twice, func(_ Key, aside bool) bool { return !aside })
	return f
}

func setOf(keys []Key) map[Key]bool {
	m := make(map[Key]bool, len(keys))
	for _, k := range keys {
		m[k] = true
	}
	return m
}
