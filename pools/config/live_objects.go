package config

import (
	"drover/pools"
	"drover/pools/config/declared"
	"drover/pools/config/include"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// SetObjects puts objects of the admin cluster in force, beside the config file and the
// nodes of the API. Of an object that is wrong, or in conflict, its last good version stays
// in force. After an error, which is none of the objects', nothing is changed.
func (l *Live) SetObjects(desired []*declared.Object) (declared.Choice, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.desired
	l.desired = desired
	err := l.refit()
	if err != nil {
		l.desired = before
	}
	return l.Objects(), err
}

// refit puts the farm of the file in force again, with the objects that fit now.
func (l *Live) refit() error {
	nodes, err := l.store.Nodes()
	if err != nil {
		return err
	}
	next, err := l.build(l.file, nodes)
	if err == nil {
		l.use(next)
	}
	return err
}

// Objects returns the objects in force, and what is wrong with others. It never blocks.
func (l *Live) Objects() declared.Choice { return *l.choice.Load() }

// Check returns the error that [Live.Reload] would return for the text of a config, and changes
// nothing.
func (l *Live) Check(text *include.Text) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes, err := l.store.Nodes()
	if err == nil {
		_, err = l.buildFrom(text, nodes)
	}
	return err
}

// built is a farm that can be put in force.
type built struct {
	file    decoded
	choice  declared.Choice
	checked resolve.Checked
}

// buildFrom is build for the text of the config, which must be valid without objects, as
// drover check sees it.
func (l *Live) buildFrom(text *include.Text, nodes []pools.PoolNode) (built, error) {
	file := decodeText(text)
	if len(l.desired) > 0 {
		if _, err := file.with(nil, nil, nil); err != nil {
			return built{}, err
		}
	}
	return l.build(file, nodes)
}

// build makes a farm of a config file, the nodes of the API, and the objects that can be in
// force with them.
func (l *Live) build(file decoded, nodes []pools.PoolNode) (b built, err error) {
	desired := l.desired
	if file.Config.Server.Objects.Namespace == "" {
		desired = nil
	}
	b.file = file
	mayWait := allWait // at the start: the admin cluster may not answer
	if l.Farm() != nil {
		mayWait = l.Farm().Waits
	}
	b.choice, err = declared.Choose(desired, l.Objects().InForce, func(all []*declared.Object) (err error) {
		b.checked, err = file.with(all, nodes, mayWait)
		return err
	})
	if err == nil && l.Farm() != nil {
		err = lost(b.choice)
	}
	return b, err
}

// use puts a farm in force.
func (l *Live) use(b built) {
	if l.Farm() == nil {
		c := &b.checked.Config
		l.started, l.ipv4, l.ipv6 = c.Server, c.HasIPv4(), c.HasIPv6()
	}
	l.place(&b.checked)
	l.file = b.file
	l.choice.Store(&b.choice)
	l.swap(b.checked)
}

// place sets what a farm has of the running server: its listeners and its addresses.
func (l *Live) place(c *resolve.Checked) {
	if l.Farm() != nil {
		c.Listeners, c.Local, c.Local6 = l.started, Locals(l.started.Interfaces), Locals6(l.started.Interfaces)
	}
}

// lost returns the mistakes of objects that were in force, and can be so no more; nil if
// there are none.
func lost(c declared.Choice) error {
	var errs mistake.Errors
	for _, k := range c.Dropped {
		errs = append(errs, c.Wrong[k]...)
	}
	return errs.Err()
}
