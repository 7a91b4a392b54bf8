package objects

import (
	"errors"
	"maps"
	"slices"

	"drover/pools"
	"drover/pools/config/mistake"
)

// Bounds of [Choose]: how often the mistakes of all objects are looked for together, and how
// many objects are tried one by one.
const (
	maxRounds = 16
	maxSingle = 64
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
// force before. The function check returns the mistakes of a farm with the objects that it
// gets. The error is of a check that fails whatever the objects are.
func Choose(desired, last []*Object, check func([]*Object) error) (Choice, error) {
	if len(desired)+len(last) == 0 {
		return Choice{}, check(nil)
	}
	p := newPicker(desired, last, check)
	for _, step := range []func() error{p.blameChanged, p.restoreDeleted, p.addSingly, p.dropAny} {
		switch err := step(); {
		case err == nil:
			return p.choice(), nil
		case !isMistakes(err):
			return Choice{}, err
		}
	}
	return Choice{}, p.err
}

func isMistakes(err error) bool {
	_, ok := errors.AsType[mistake.Errors](err)
	return ok
}

// picker holds the version of each object that is tried.
type picker struct {
	check               func([]*Object) error
	desired, last, pick map[Key]*Object
	wrong               map[Key]mistake.Errors
	err                 error // of the last check
}

func newPicker(desired, last []*Object, check func([]*Object) error) *picker {
	p := &picker{check: check, desired: byKey(desired), last: byKey(last), wrong: map[Key]mistake.Errors{}}
	p.pick = maps.Clone(p.desired)
	return p
}

// try checks the versions that are picked.
func (p *picker) try() error {
	p.err = p.check(slices.SortedFunc(maps.Values(p.pick), compare))
	return p.err
}

func byKey(all []*Object) map[Key]*Object {
	m := make(map[Key]*Object, len(all))
	for _, o := range all {
		m[o.Key] = o
	}
	return m
}

// changed reports whether the version of an object that is tried was not in force before.
func (p *picker) changed(k Key) bool { o := p.pick[k]; return o != nil && !o.Same(p.last[k]) }

// blameChanged takes the last version of changed objects with mistakes, until none is left.
func (p *picker) blameChanged() error {
	for range maxRounds {
		err := p.try()
		if err == nil || !p.revert(p.blame(err)) {
			return err
		}
	}
	return p.err
}

// restoreDeleted takes back deleted objects, of which others need one.
func (p *picker) restoreDeleted() error {
	var back []Key
	for k, o := range p.last {
		if p.desired[k] == nil && p.pick[k] == nil {
			p.pick[k] = o
			back = append(back, k)
		}
	}
	if len(back) == 0 {
		return p.err
	}
	if err := p.blameChanged(); err != nil || len(back) > maxSingle {
		return err
	}
	slices.SortFunc(back, func(a, b Key) int { return -compareKeys(a, b) }) // those that nothing refers to first
	for _, k := range back {
		o := p.pick[k]
		if delete(p.pick, k); p.try() != nil {
			p.pick[k] = o
		}
	}
	return p.try()
}

// addSingly begins with what was in force, and adds the changed objects one by one: an
// object can be wrong because of a change of another.
func (p *picker) addSingly() error {
	var changed []*Object
	for k, o := range p.pick {
		if p.changed(k) {
			changed = append(changed, o)
		}
	}
	cause := p.err
	if len(changed) == 0 {
		return cause
	}
	for _, o := range changed {
		p.undo(o.Key)
	}
	if err := p.try(); err != nil {
		return err
	}
	slices.SortFunc(changed, compare)
	for i, o := range changed {
		p.pick[o.Key] = o
		if i < maxSingle {
			cause = p.try()
		}
		if cause != nil {
			p.note(o.Key, mistakesOf(cause))
			p.undo(o.Key)
		}
	}
	return p.try()
}

// dropAny leaves out objects that were valid before, and are so no more with the config
// file.
func (p *picker) dropAny() error {
	for range maxRounds {
		err := p.try()
		guilty := p.blame(err)
		if err == nil || len(guilty) == 0 {
			return err
		}
		for k, errs := range guilty {
			p.note(k, errs)
			delete(p.pick, k)
		}
	}
	return p.err
}

func mistakesOf(err error) mistake.Errors {
	errs, _ := errors.AsType[mistake.Errors](err)
	return errs[:min(len(errs), maxWords)]
}

// blame returns the objects with mistakes. Of two that are in conflict it is the one that
// has changed.
func (p *picker) blame(err error) map[Key]mistake.Errors {
	errs, _ := errors.AsType[mistake.Errors](err)
	found := map[Key]mistake.Errors{}
	for _, e := range errs {
		guilty, first := Key{}, true
		for _, o := range [...]pools.Origin{e.Origin, e.Other} {
			k, ok := p.keyOf(o)
			if ok && (first || !p.changed(guilty) && p.changed(k)) {
				guilty, first = k, false
			}
		}
		if !first && len(found[guilty]) < maxWords {
			found[guilty] = append(found[guilty], e)
		}
	}
	return found
}

// keyOf returns the object that is tried, of an origin.
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

// revert takes the last version of objects that have changed, and leaves out new ones.
func (p *picker) revert(guilty map[Key]mistake.Errors) (progress bool) {
	for k, errs := range guilty {
		if p.changed(k) {
			p.note(k, errs)
			p.undo(k)
			progress = true
		}
	}
	return progress
}

// undo picks the version of an object that was in force, if any.
func (p *picker) undo(k Key) {
	if p.pick[k] = p.last[k]; p.pick[k] == nil {
		delete(p.pick, k)
	}
}

func (p *picker) note(k Key, errs mistake.Errors) {
	if p.wrong[k] == nil {
		p.wrong[k] = errs
	}
}

func (p *picker) choice() Choice {
	c := Choice{InForce: slices.SortedFunc(maps.Values(p.pick), compare), Wrong: map[Key]mistake.Errors{}}
	for _, o := range c.InForce {
		if p.desired[o.Key] == nil {
			c.Kept = append(c.Kept, o.Key)
		}
	}
	for k, errs := range p.wrong {
		if d := p.desired[k]; d != nil && !d.Same(p.pick[k]) {
			c.Wrong[k] = errs
		}
		if p.last[k] != nil && p.pick[k] == nil {
			c.Dropped = append(c.Dropped, k)
		}
	}
	slices.SortFunc(c.Dropped, compareKeys)
	return c
}
