package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"drover/pools"
	"drover/pools/config/declared"
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
	if err == nil && changed.Name != name {
		err = pools.Hint("rename it with drover node rename", "node %q cannot be renamed to %q here", name, changed.Name)
	}
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
	waiting := l.Farm().Waiting()
	i := slices.IndexFunc(waiting, func(n pools.PoolNode) bool { return n.Name == name })
	switch {
	case !ok && i >= 0:
		return waiting[i], nil
	case !ok:
		return n.PoolNode, fmt.Errorf("%w: %q", pools.ErrNotFound, name)
	case n.Declared():
		return n.PoolNode, &DeclaredError{Name: name, Where: n.Source}
	}
	return n.PoolNode, nil
}

// CheckNodes returns the error that [Live.ChangeNodes] would return, and changes nothing.
func (l *Live) CheckNodes(changes []pools.NodeChange) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _, err := l.plan(changes)
	return err
}

// maxAdded bounds the nodes of the API.
const maxAdded = 50_000

// plan checks the whole farm with the changes.
func (l *Live) plan(changes []pools.NodeChange) (b batch, checked resolve.Checked, err error) {
	if b, err = newBatch(l.Farm(), slices.Concat(l.checked.Added, l.checked.Waiting), changes); err != nil || len(changes) == 0 {
		return b, l.checked, err
	}
	if n := len(b.nodes); n > maxAdded && n > len(l.checked.Added)+len(l.checked.Waiting) {
		return b, l.checked, pools.Hint("remove nodes that are not needed, or declare them in the config file", "the API can have %d nodes at most", maxAdded)
	}
	unchanged := func(name string) bool {
		return l.Farm().Waits(name) && !slices.ContainsFunc(b.put, func(n pools.PoolNode) bool { return n.Name == name })
	}
	if checked, err = withNodes(l.checked, b.nodes, unchanged); err == nil {
		err = cmp.Or(l.refuseTaken(b.put), l.refuseLeased(b.put))
	}
	return b, checked, err
}

// change checks the whole farm with the changes, stores them, and swaps the farm.
func (l *Live) change(changes []pools.NodeChange) error {
	b, checked, err := l.plan(changes)
	if err != nil || len(changes) == 0 {
		return err
	}
	if err := l.store.ChangeNodes(b.put, b.remove); err != nil {
		return err
	}
	l.retired.leaving = b.leaving()
	l.swap(checked)
	l.retired.leaving = nil
	if c := l.Objects(); len(c.Wrong)+len(c.Kept) > 0 {
		// The change may have made room for objects; if not, nothing is different.
		if l.refit() == nil && !slices.EqualFunc(c.InForce, l.Objects().InForce, (*declared.Object).Same) {
			l.refitted.Store(true)
		}
	}
	return nil
}

// Refitted reports whether a change of nodes has changed which objects are in force, since it was
// called last.
func (l *Live) Refitted() bool { return l.refitted.Swap(false) }

// batch is the changes of one step.
type batch struct {
	farm   *resolve.Farm
	nodes  []pools.PoolNode // all nodes of the API, as they are to be
	put    []pools.PoolNode
	remove []string
}

// newBatch applies changes to the nodes of the API. All old nodes go before any new one
// comes, so that nodes can exchange their names.
func newBatch(farm *resolve.Farm, added []pools.PoolNode, changes []pools.NodeChange) (batch, error) {
	b := batch{farm: farm, nodes: slices.Clone(added)}
	at := make(map[string]int, len(b.nodes))
	for i, n := range b.nodes {
		at[n.Name] = i
	}
	gone := map[string]bool{}
	for _, c := range changes {
		if err := b.leave(c, at, gone); err != nil {
			return b, err
		}
	}
	come := map[string]bool{}
	for _, c := range changes {
		if err := b.enter(c.New, at, gone, come); err != nil {
			return b, err
		}
	}
	for name := range gone {
		if !come[name] {
			b.remove = append(b.remove, name)
		}
	}
	b.nodes = slices.DeleteFunc(b.nodes, func(n pools.PoolNode) bool { return gone[n.Name] && !come[n.Name] })
	return b, nil
}

// leave checks the old node of a change, and notes that it goes.
func (b *batch) leave(c pools.NodeChange, at map[string]int, gone map[string]bool) error {
	if c.Old == nil {
		if c.New == nil {
			return pools.Hint("give the node as it is, as it is to be, or both", "a change has neither old nor new")
		}
		return nil
	}
	name := c.Old.Name
	i, there := at[name]
	switch err := b.declared(name); {
	case err != nil:
		return err
	case gone[name]:
		return pools.Hint("make it one change", "node %q is there twice", name)
	case !there:
		return fmt.Errorf("%w: %q is gone", pools.ErrChanged, name)
	case !sameNode(b.nodes[i], *c.Old):
		return fmt.Errorf("%w: %q", pools.ErrChanged, name)
	}
	gone[name] = true
	return nil
}

// enter adds the new node of a change; none for nil.
func (b *batch) enter(n *pools.PoolNode, at map[string]int, gone, come map[string]bool) error {
	if n == nil {
		return nil
	}
	i, there := at[n.Name]
	switch err := b.declared(n.Name); {
	case err != nil:
		return err
	case come[n.Name]:
		return pools.Hint("make it one change", "node %q is there twice", n.Name)
	case there && !gone[n.Name]:
		return fmt.Errorf("%w: %q", pools.ErrExists, n.Name)
	case there:
		b.nodes[i] = *n
	default:
		b.nodes = append(b.nodes, *n)
	}
	come[n.Name] = true
	b.put = append(b.put, *n)
	return nil
}

// declared returns an error for a node that the operator's file declares.
func (b *batch) declared(name string) error {
	if n, ok := b.farm.Node(name); ok && n.Declared() {
		return &DeclaredError{Name: name, Where: n.Source}
	}
	return nil
}

// sameNode reports whether the JSON of two nodes is equal.
func sameNode(a, b pools.PoolNode) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}
