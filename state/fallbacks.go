package state

import (
	"maps"
	"slices"

	"drover/pools"
	"drover/state/wal"
)

// FallBacks keeps what the boots of each node say about the generations of its image, by node.
type FallBacks struct{ rows[pools.ImageTrial] }

// Of returns what is known of a node; the zero value if nothing is. The caller must not change it.
func (f *FallBacks) Of(node string) pools.ImageTrial { return f.get(node) }

// All returns what is known, by node. The caller must not change the values.
func (f *FallBacks) All() map[string]pools.ImageTrial {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.values)
}

// Edit replaces the values of nodes by the results of edit; a zero value is removed. Without nodes it
// edits all. It does not wait for the disk, and cannot fail: changes are durable a moment later. If a
// crash loses one, a node boots a generation once more before it falls back.
func (f *FallBacks) Edit(edit func(node string, t pools.ImageTrial) pools.ImageTrial, nodes ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(nodes) == 0 {
		nodes = slices.Collect(maps.Keys(f.values))
	}
	var changes []wal.Change
	for _, node := range nodes {
		before, had := f.values[node]
		after := edit(node, before)
		switch {
		case after.Equal(before):
			continue
		case !after.IsZero():
			c, err := f.set(node, after)
			if err != nil {
				continue // it is always JSON
			}
			f.values[node] = after
			changes = append(changes, c)
		case had:
			delete(f.values, node)
			changes = append(changes, f.remove(node))
		}
	}
	for some := range slices.Chunk(changes, flushChunk) {
		f.engine.Async(some...)
	}
}
