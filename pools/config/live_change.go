package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"drover/pools"
	"drover/pools/resolve"
)

// AddNode adds a node, which is in force from the next packet on. Its errors for a bad
// node are [pools.ErrExists], [*DeclaredError], [*pools.LeasedError] and [mistake.Errors].
func (l *Live) AddNode(n pools.PoolNode) error {
	return l.ChangeNodes([]pools.NodeChange{{New: &n}})
}

// UpdateNode passes the node of that name to edit, and replaces it by the result. The
// name cannot change.
func (l *Live) UpdateNode(name string, edit func(pools.PoolNode) (pools.PoolNode, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, err := l.addedNode(name)
	if err != nil {
		return err
	}
	changed, err := edit(old)
	if err != nil {
		return err
	}
	return l.change([]pools.NodeChange{{Old: &old, New: &changed}})
}

// RemoveNode removes a node that was added over the API.
func (l *Live) RemoveNode(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, err := l.addedNode(name)
	if err != nil {
		return err
	}
	return l.change([]pools.NodeChange{{Old: &old}})
}

// ChangeNodes makes changes of several nodes in one step: all of them or none. Only the
// result is checked, so that two nodes can exchange their MACs. Its errors are those of
// [Live.AddNode] and [pools.ErrChanged].
func (l *Live) ChangeNodes(changes []pools.NodeChange) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change(changes)
}

// addedNode returns a node that was added over the API.
func (l *Live) addedNode(name string) (pools.PoolNode, error) {
	n, ok := l.Farm().Node(name)
	switch {
	case !ok:
		return n.PoolNode, fmt.Errorf("%w: %q", pools.ErrNotFound, name)
	case n.Declared():
		return n.PoolNode, &DeclaredError{Name: name, Where: n.Source}
	}
	return n.PoolNode, nil
}

// change checks the whole farm with the changes, stores them, and swaps the farm.
func (l *Live) change(changes []pools.NodeChange) error {
	b := batch{farm: l.Farm(), nodes: slices.Clone(l.checked.Added), at: map[string]int{}, seen: map[string]bool{}}
	for i, n := range b.nodes {
		b.at[n.Name] = i
	}
	for _, c := range changes {
		if err := b.add(c); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return nil
	}
	b.nodes = slices.DeleteFunc(b.nodes, func(n pools.PoolNode) bool { return slices.Contains(b.remove, n.Name) })
	checked, err := withNodes(l.checked, b.nodes)
	if err != nil {
		return err
	}
	if err := l.refuseLeased(b.put); err != nil {
		return err
	}
	if err := l.store.ChangeNodes(b.put, b.remove); err != nil {
		return err
	}
	l.swap(checked)
	if c := l.Objects(); len(c.Wrong)+len(c.Kept) > 0 {
		_ = l.refit() // the change may have made room for objects; if not, nothing is different
	}
	return nil
}

// refuseLeased returns an error for a node that gets an address which another machine
// leases. A chassis chooses the addresses of its nodes itself, and tries again: they wait
// for theirs.
func (l *Live) refuseLeased(nodes []pools.PoolNode) error {
	for i := range nodes {
		n := &nodes[i].Node
		old, _ := l.Farm().Node(n.Name)
		if !n.ChassisSlot.IsZero() {
			continue
		}
		for _, a := range [...]netip.Addr{n.IP, n.IP6} {
			if a == old.IP || a == old.IP6 {
				continue
			}
			if err := l.leasedTo(n, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch collects the changes of one step.
type batch struct {
	farm   *resolve.Farm
	nodes  []pools.PoolNode
	at     map[string]int  // by name: index in nodes
	seen   map[string]bool // names of changed nodes
	put    []pools.PoolNode
	remove []string
}

func (b *batch) add(c pools.NodeChange) error {
	node := c.New
	switch {
	case c.Old == nil && c.New == nil:
		return pools.Hint("give the node as it is, as it is to be, or both", "a change has neither old nor new")
	case c.New == nil:
		node = c.Old
	case c.Old != nil && c.Old.Name != c.New.Name:
		return pools.Hint("remove it and add it anew", "node %q cannot be renamed to %q", c.Old.Name, c.New.Name)
	}
	name := node.Name
	if n, ok := b.farm.Node(name); ok && n.Declared() {
		return &DeclaredError{Name: name, Where: n.Source}
	}
	i, there := b.at[name]
	switch {
	case b.seen[name]:
		return pools.Hint("make it one change", "node %q is there twice", name)
	case c.Old == nil && there:
		return fmt.Errorf("%w: %q", pools.ErrExists, name)
	case c.Old != nil && !there:
		return fmt.Errorf("%w: %q is gone", pools.ErrChanged, name)
	case c.Old != nil && !sameNode(b.nodes[i], *c.Old):
		return fmt.Errorf("%w: %q", pools.ErrChanged, name)
	}
	b.seen[name] = true
	switch {
	case c.New == nil:
		b.remove = append(b.remove, name)
		return nil
	case there:
		b.nodes[i] = *c.New
	default:
		b.nodes = append(b.nodes, *c.New)
	}
	b.put = append(b.put, *c.New)
	return nil
}

// sameNode reports whether the JSON of two nodes is equal.
func sameNode(a, b pools.PoolNode) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}
