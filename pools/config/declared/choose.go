package declared

import (
	"errors"
	"maps"
	"slices"

	"drover/pools"
	"drover/pools/config/mistake"
)

// maxWords bounds the mistakes that are kept of one object.
const maxWords = 10

// Choice is the result of [Choose].
type Choice struct {
	InForce []*Object
	// Wrong are the mistakes of objects whose newest version is not in force.
	Wrong map[Key]mistake.Errors
	// Kept are the objects that were deleted and are still in force: others need them.
	Kept []Key
	// Dropped are the objects that were in force, still exist, and can be so no more: the
	// config file has taken what is theirs.
	Dropped []Key
}

// Find returns the version of an object that is in force, or nil.
func (c Choice) Find(k Key) *Object {
	i, ok := slices.BinarySearchFunc(c.InForce, k, func(o *Object, k Key) int { return compareKeys(o.Key, k) })
	if !ok {
		return nil
	}
	return c.InForce[i]
}

// Choose returns the objects that can be in force together. It takes the newest version of
// each, from desired, if that is valid; else its version in last, the objects that were in
// force before. Choosing again with the result as last gives the same result.
//
// The function check returns the mistakes of a farm with the objects that it gets; its last
// call is with the objects that are chosen. The error is of a check that fails whatever the
// objects are.
func Choose(desired, last []*Object, check func([]*Object) error) (Choice, error) {
	p := &picker{check: check, desired: byKey(desired), last: byKey(last), wrong: map[Key]mistake.Errors{}}
	p.pick = maps.Clone(p.desired)
	if p.try() == nil {
		return p.choice(), nil
	}
	p.pick = maps.Clone(p.last)
	for k, o := range p.desired {
		if o.Same(p.last[k]) {
			p.pick[k] = o // of the newest generation
		}
	}
	if err := p.dropInvalid(); err != nil {
		return Choice{}, err
	}
	for p.pass() { // a change that was made can make room for others
	}
	if err := p.try(); err != nil {
		return Choice{}, err
	}
	return p.choice(), nil
}

func byKey(all []*Object) map[Key]*Object {
	m := make(map[Key]*Object, len(all))
	for _, o := range all {
		m[o.Key] = o
	}
	return m
}

func (p *picker) choice() Choice {
	c := Choice{InForce: slices.SortedFunc(maps.Values(p.pick), compare), Wrong: map[Key]mistake.Errors{}}
	for _, o := range c.InForce {
		if p.desired[o.Key] == nil {
			c.Kept = append(c.Kept, o.Key)
		}
	}
	for k, o := range p.desired {
		if !o.Same(p.pick[k]) {
			c.Wrong[k] = p.wrong[k]
		}
		if p.last[k] != nil && p.pick[k] == nil {
			c.Dropped = append(c.Dropped, k)
		}
	}
	slices.SortFunc(c.Dropped, compareKeys)
	return c
}

func mistakesOf(err error) mistake.Errors {
	errs, _ := errors.AsType[mistake.Errors](err)
	return errs
}

// words returns the first mistakes, for an object that none of them names.
func words(err error) mistake.Errors {
	errs := mistakesOf(err)
	return errs[:min(len(errs), maxWords)]
}

// keyOf returns the object of an origin, if it is picked.
func (p *picker) keyOf(o pools.Origin) (Key, bool) {
	if o.Line != 0 {
		return Key{}, false
	}
	for _, kind := range pools.ObjectKinds {
		n := len(kind)
		if len(o.File) > n && o.File[:n] == string(kind) && o.File[n] == ' ' {
			k := Key{kind, o.File[n+1:]}
			return k, p.pick[k] != nil
		}
	}
	return Key{}, false
}

// named returns the objects that are picked and that a mistake names: the one that it is of, and
// the other of a conflict.
func (p *picker) named(e *mistake.Error) (keys []Key) {
	for _, o := range [...]pools.Origin{e.Origin, e.Other} {
		if k, ok := p.keyOf(o); ok && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}
