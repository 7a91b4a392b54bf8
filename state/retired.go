package state

import (
	"cmp"
	"maps"
	"slices"

	"drover/pools"
	"drover/state/wal"
)

// Retired keeps the nodes that the config has lost, by name. It implements config.RetiredStore.
type Retired struct{ rows[pools.RetiredNode] }

// Retired returns all of them, those that were lost first at the begin.
func (r *Retired) Retired() []pools.RetiredNode {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.values), func(a, b pools.RetiredNode) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
}

// ChangeRetired keeps the nodes of put under their names, and removes the names in remove. It does
// not wait for the disk, and cannot fail: the changes are durable a moment later.
func (r *Retired) ChangeRetired(put []pools.RetiredNode, remove []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var changes []wal.Change
	for _, name := range remove {
		if _, ok := r.values[name]; ok {
			delete(r.values, name)
			changes = append(changes, r.remove(name))
		}
	}
	for _, n := range put {
		c, err := r.set(n.Name, n)
		if err != nil {
			continue // a node of a config is always JSON
		}
		r.values[n.Name] = n
		changes = append(changes, c)
	}
	for some := range slices.Chunk(changes, flushChunk) {
		r.engine.Async(some...)
	}
}
