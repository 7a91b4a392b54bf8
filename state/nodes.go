package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/pools"
	"drover/state/wal"
)

// Nodes keeps the nodes added over the API, by name. It implements
// config.NodeStore.
type Nodes struct{ rows[pools.PoolNode] }

// Nodes returns all nodes, sorted by name. They must not be changed.
func (n *Nodes) Nodes() ([]pools.PoolNode, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	byName := func(a, b pools.PoolNode) int { return strings.Compare(a.Name, b.Name) }
	return slices.SortedFunc(maps.Values(n.values), byName), nil
}

// ChangeNodes stores the nodes in put under their names, and removes the names in
// remove, durably. After an error nothing has changed.
func (n *Nodes) ChangeNodes(put []pools.PoolNode, remove []string) error {
	if len(put)+len(remove) == 0 {
		return nil
	}
	t, before, err := n.change(put, remove)
	if err != nil {
		return err
	}
	if err = n.engine.Wait(t); err != nil {
		n.restore(before)
	}
	return err
}

// change makes a change in RAM and queues it. before has the earlier nodes by name; a
// node that did not exist has an empty Name.
func (n *Nodes) change(put []pools.PoolNode, remove []string) (t wal.Ticket, before map[string]pools.PoolNode, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before = make(map[string]pools.PoolNode)
	var changes []wal.Change
	for _, node := range put {
		c, err := n.set(node.Name, node)
		if err != nil {
			return 0, nil, fmt.Errorf("node %q: %w", node.Name, err)
		}
		changes, before[node.Name] = append(changes, c), n.values[node.Name]
	}
	for _, name := range remove {
		changes, before[name] = append(changes, n.remove(name)), n.values[name]
	}
	if t, err = n.engine.Put(changes...); err != nil {
		return 0, nil, err
	}
	for _, node := range put {
		n.values[node.Name] = node
	}
	for _, name := range remove {
		delete(n.values, name)
	}
	return t, before, nil
}

// restore reverts a change whose write failed. It also writes the earlier nodes, since
// the disk may have the change despite the error.
func (n *Nodes) restore(before map[string]pools.PoolNode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, node := range before {
		c := n.remove(name)
		if delete(n.values, name); node.Name != "" {
			n.values[name] = node
			c, _ = n.set(name, node) // it was stored before
		}
		n.engine.Async(c)
	}
}
