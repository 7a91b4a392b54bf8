package config

import (
	"drover/pools/config/mistake"
	"drover/pools/config/objects"
	"drover/pools/resolve"
)

// SetObjects puts objects of the admin cluster in force, beside the config file and the
// nodes of the API. Of an object that is wrong, or in conflict, its last good version stays
// in force. After an error, which is none of the objects', nothing is changed.
func (l *Live) SetObjects(desired []*objects.Object) (objects.Choice, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.desired
	l.desired = desired
	err := l.build(l.file)
	if err != nil {
		l.desired = before
	}
	return l.Objects(), err
}

// Objects returns the objects in force, and what is wrong with others. It never blocks.
func (l *Live) Objects() objects.Choice { return *l.choice.Load() }

// build puts a farm in force that is made of a config file, the nodes of the API, and the
// objects that can be in force with them.
func (l *Live) build(file source) error {
	nodes, err := l.store.Nodes()
	if err != nil {
		return err
	}
	desired := l.desired
	if file.Config.Server.Objects.Namespace == "" {
		desired = nil
	}
	var c resolve.Checked
	choice, err := objects.Choose(desired, l.Objects().InForce, func(all []*objects.Object) (err error) {
		c, err = file.with(all, nodes)
		return err
	})
	if err != nil {
		return err
	}
	started := l.Farm() != nil
	if errs := lost(choice); started && errs != nil {
		return errs
	}
	if started {
		c.Listeners, c.Local, c.Local6 = l.started, Locals(l.started.Interfaces), Locals6(l.started.Interfaces)
	} else {
		l.started = c.Config.Server
	}
	l.file = file
	l.choice.Store(&choice)
	l.swap(c)
	return nil
}

// lost returns the mistakes of objects that were in force, and can be so no more; nil if
// there are none.
func lost(c objects.Choice) error {
	var errs mistake.Errors
	for _, k := range c.Dropped {
		errs = append(errs, c.Wrong[k]...)
	}
	return errs.Err()
}
