package config

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"drover/pools"
)

// NodeStore keeps the nodes added over the API.
type NodeStore interface {
	// Nodes returns all of them, in any order.
	Nodes() ([]pools.PoolNode, error)
	// ChangeNodes stores nodes under their names and removes those of other
	// names, durably, before it returns: all of it or, when it returns an
	// error, nothing. To remove one that is not there is no error.
	ChangeNodes(put []pools.PoolNode, remove []string) error
}

// DeclaredError refuses a change of a node that the operator's file declares.
type DeclaredError struct {
	Name  string
	Where pools.Origin
}

func (e *DeclaredError) Error() string {
	return fmt.Sprintf("node %q is declared in %s: change it there", e.Name, e.Where.Place())
}

// Live is the farm in force, and the one way to change it. Whatever changes (a
// reload of the file, a node over the API), the whole farm is built and
// checked anew, what must last is stored, and only then is the new farm
// swapped in; a bad change leaves the old one in force. Reading never blocks.
type Live struct {
	path    string
	store   NodeStore
	mu      sync.Mutex // held by changes
	checked pools.Checked
	started pools.Server
	farm    atomic.Pointer[pools.Farm]
}

// NewLive reads the config file at path and the nodes of store.
func NewLive(path string, store NodeStore) (*Live, error) {
	l := &Live{path: path, store: store}
	return l, l.Reload()
}

// Farm returns the farm in force.
func (l *Live) Farm() *pools.Farm { return l.farm.Load() }

// Reload reads the config file again. Where nodes reach the server stays as it was
// at the start: the listeners do not move before a restart.
func (l *Live) Reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes, err := l.store.Nodes()
	if err != nil {
		return err
	}
	c, err := load(l.path, nodes)
	if err != nil {
		return err
	}
	if l.Farm() == nil {
		l.started = c.Config.Server
	} else {
		c.Reach = l.checked.Reach
	}
	l.swap(c)
	return nil
}

// NeedsRestart reports whether the server section of the config differs from the
// one that this Live began with, whose listeners are in use.
func (l *Live) NeedsRestart() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !reflect.DeepEqual(l.checked.Config.Server, l.started)
}

// swap puts a config in force.
func (l *Live) swap(c pools.Checked) {
	l.checked = c
	l.farm.Store(pools.NewFarm(c))
}

// AddNode adds a node; it is resolved from the next packet on. It returns
// [ErrExists], a [*DeclaredError] or an [Errors] when it refuses.
func (l *Live) AddNode(n pools.PoolNode) error {
	return l.change(n.Name, func(nodes []pools.PoolNode, i int) ([]pools.PoolNode, error) {
		if i >= 0 {
			return nil, fmt.Errorf("%w: %q", pools.ErrExists, n.Name)
		}
		return append(nodes, n), nil
	}, func() error { return l.store.ChangeNodes([]pools.PoolNode{n}, nil) })
}

// UpdateNode passes the node of that name to edit and puts what it returns in
// its place. A name cannot be changed.
func (l *Live) UpdateNode(name string, edit func(pools.PoolNode) (pools.PoolNode, error)) error {
	var changed pools.PoolNode
	return l.change(name, func(nodes []pools.PoolNode, i int) (_ []pools.PoolNode, err error) {
		if i < 0 {
			return nil, fmt.Errorf("%w: %q", pools.ErrNotFound, name)
		}
		if changed, err = edit(nodes[i]); err != nil {
			return nil, err
		}
		if changed.Name != name {
			return nil, pools.Hint("remove it and add it anew", "node %q cannot be renamed to %q", name, changed.Name)
		}
		nodes[i] = changed
		return nodes, nil
	}, func() error { return l.store.ChangeNodes([]pools.PoolNode{changed}, nil) })
}

// RemoveNode removes a node that was added over the API.
func (l *Live) RemoveNode(name string) error {
	return l.change(name, func(nodes []pools.PoolNode, i int) ([]pools.PoolNode, error) {
		if i < 0 {
			return nil, fmt.Errorf("%w: %q", pools.ErrNotFound, name)
		}
		return slices.Delete(nodes, i, i+1), nil
	}, func() error { return l.store.ChangeNodes(nil, []string{name}) })
}

// change is the path of every change of nodes: edit a copy of the API's nodes
// (i is the index of the one named, or -1), check the farm as a whole,
// persist, swap.
func (l *Live) change(name string, edit func(nodes []pools.PoolNode, i int) ([]pools.PoolNode, error), persist func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, ok := l.Farm().Node(name); ok && n.Declared() {
		return &DeclaredError{Name: name, Where: n.Source}
	}
	nodes := slices.Clone(l.checked.Added)
	i := slices.IndexFunc(nodes, func(n pools.PoolNode) bool { return n.Name == name })
	nodes, err := edit(nodes, i)
	if err != nil {
		return err
	}
	c, err := withNodes(l.checked, nodes)
	if err != nil {
		return err
	}
	if err := persist(); err != nil {
		return err
	}
	l.swap(c)
	return nil
}
