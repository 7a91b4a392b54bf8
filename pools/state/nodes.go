package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"drover/pools"
)

// Nodes keeps the nodes added over the API. It implements [config.NodeStore].
type Nodes struct {
	engine engine
	mu     sync.Mutex
	byName map[string][]byte // JSON of a pools.PoolNode
}

func newNodes(e engine) *Nodes { return &Nodes{engine: e, byName: map[string][]byte{}} }

func (n *Nodes) load(key, value []byte) error {
	n.byName[string(key)] = bytes.Clone(value)
	return nil
}

func (n *Nodes) each(put func(key, value []byte), between func() error) error {
	return visit(&n.mu, n.byName, func(name string, value []byte) { put([]byte(name), value) }, between)
}

// Nodes returns all of them, by name.
func (n *Nodes) Nodes() ([]pools.PoolNode, error) {
	n.mu.Lock()
	values := maps.Clone(n.byName)
	n.mu.Unlock()
	var all []pools.PoolNode
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var node pools.PoolNode
		if err := json.Unmarshal(values[name], &node); err != nil {
			return nil, fmt.Errorf("stored node %q: %w", name, err)
		}
		all = append(all, node)
	}
	return all, nil
}

// ChangeNodes stores nodes under their names, and removes those of other names,
// together or not at all. It is durable when ChangeNodes returns. When it returns
// an error, everything is as it was.
func (n *Nodes) ChangeNodes(put []pools.PoolNode, remove []string) error {
	var changes []change
	for _, node := range put {
		value, err := json.Marshal(node)
		if err != nil {
			return fmt.Errorf("node %q: %w", node.Name, err)
		}
		changes = append(changes, change{tableNodes, []byte(node.Name), value})
	}
	for _, name := range remove {
		changes = append(changes, change{table: tableNodes, key: []byte(name)})
	}
	if len(changes) == 0 {
		return nil
	}
	n.mu.Lock()
	t, err := n.engine.put(changes...)
	var before []change
	if err == nil {
		before = n.apply(changes)
	}
	n.mu.Unlock()
	if err != nil {
		return err
	}
	if err := n.engine.wait(t); err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		slices.Reverse(before) // a node that is in changes twice
		n.apply(before)
		n.engine.async(before...) // the disk may have it all the same
		return err
	}
	return nil
}

// apply makes changes in RAM and returns those that take them back.
func (n *Nodes) apply(changes []change) (before []change) {
	for _, c := range changes {
		name := string(c.key)
		before = append(before, change{tableNodes, c.key, n.byName[name]})
		if c.value == nil {
			delete(n.byName, name)
		} else {
			n.byName[name] = c.value
		}
	}
	return before
}
