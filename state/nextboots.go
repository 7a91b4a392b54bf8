package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/state/wal"
)

// NextBoots keeps next boots: what a node does at its next boot, once, instead of what
// its pool says.
//
// A boot takes the next boot with its script. Repeated requests of that boot get the
// same answer. The next DISCOVER of the firmware begins another boot and so ends the
// next boot. If this server sees no DISCOVER, it ends after [boots.FirmwarePhase].
type NextBoots struct {
	// Now is the clock.
	Now func() time.Time

	rows[nextBoot] // by node
}

// nextBoot is the stored value of a node.
type nextBoot struct {
	What  pools.NextBoot `json:"what"`
	Taken time.Time      `json:"taken,omitzero"` // when a boot last took it; zero: no boot has
}

// Of returns the next boot of a node that is pending, or that the current boot has
// taken; empty if there is none.
func (n *NextBoots) Of(node string) pools.NextBoot {
	if b := n.get(node); !n.over(b) {
		return b.What
	}
	return ""
}

// Pending returns the next boot of a node that no boot has taken yet, or empty.
func (n *NextBoots) Pending(node string) pools.NextBoot {
	if b := n.get(node); b.Taken.IsZero() {
		return b.What
	}
	return ""
}

// over reports whether the firmware phase of the boot that took b is over.
func (n *NextBoots) over(b nextBoot) bool {
	return !b.Taken.IsZero() && !boots.Recent(b.Taken, n.Now(), boots.FirmwarePhase)
}

// Set sets the next boot of nodes, durably: of all or of none. Empty removes it.
func (n *NextBoots) Set(what pools.NextBoot, nodes ...string) error {
	return n.durably(nodes, func(nextBoot) nextBoot { return nextBoot{What: what} })
}

// Keep removes the next boots of all nodes but those for which keep returns true.
func (n *NextBoots) Keep(keep func(node string) bool) error {
	n.mu.Lock()
	nodes := slices.Collect(maps.Keys(n.values))
	n.mu.Unlock()
	return n.Set("", slices.DeleteFunc(nodes, keep)...)
}

// Take records, durably, that a boot got its script. Further scripts of that boot change
// nothing.
//
// While the disk takes no writes, that is recorded in RAM, and stored as soon as it does: a
// machine must not wait for the disk to boot. If a crash loses the change, the next boot is
// taken once more.
func (n *NextBoots) Take(node string) error {
	if !n.get(node).Taken.IsZero() {
		return nil
	}
	now := n.Now().UTC()
	t, _, err := n.change([]string{node}, func(b nextBoot) nextBoot {
		b.Taken = now
		return b
	}, n.putOrLater)
	if err == nil {
		err = n.engine.Wait(t) // a write that failed is stored by the next snapshot
	}
	if err != nil && !errors.Is(unavailable(err), boots.ErrUnavailable) {
		return fmt.Errorf("next boot of %q: %w", node, err)
	}
	return nil
}

// durably edits the next boots of nodes, and waits until that is stored. After an error nothing
// has changed.
func (n *NextBoots) durably(nodes []string, edit func(nextBoot) nextBoot) error {
	t, before, err := n.change(nodes, edit, n.engine.Put)
	if err == nil {
		if err = n.engine.Wait(t); err != nil {
			n.restore(before)
		}
	}
	switch {
	case err == nil:
		return nil
	case len(nodes) == 1:
		return fmt.Errorf("next boot of %q: %w", nodes[0], err)
	}
	return fmt.Errorf("next boots of %d nodes: %w", len(nodes), err)
}

// putOrLater is the engine's Put, or its Async while the disk takes no writes.
func (n *NextBoots) putOrLater(c ...wal.Change) (wal.Ticket, error) {
	t, err := n.engine.Put(c...)
	if errors.Is(unavailable(err), boots.ErrUnavailable) {
		return n.later(c...)
	}
	return t, err
}

// later is the engine's Async.
func (n *NextBoots) later(c ...wal.Change) (wal.Ticket, error) {
	n.engine.Async(c...)
	return 0, nil
}

// Discover records a netboot DISCOVER of a node's firmware. It ends a next boot that was
// taken. It does not wait for the disk: if a crash loses the change, the next boot ends
// with the firmware phase.
func (n *NextBoots) Discover(node string) {
	if n.get(node).Taken.IsZero() {
		return
	}
	_, _, _ = n.change([]string{node}, func(nextBoot) nextBoot { return nextBoot{} }, n.later)
}

// change replaces the values of nodes by the results of edit, if store accepts all of them. A
// value without What is removed. before has the earlier values by node; one without What did not
// exist.
func (n *NextBoots) change(nodes []string, edit func(nextBoot) nextBoot, store func(...wal.Change) (wal.Ticket, error)) (t wal.Ticket, before map[string]nextBoot, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before = map[string]nextBoot{}
	fresh := map[string]nextBoot{}
	var changes []wal.Change
	for _, node := range nodes {
		old, exists := n.values[node]
		b := edit(old)
		if b.What == "" && !exists {
			continue
		}
		c, err := n.stored(node, b)
		if err != nil {
			return 0, nil, err
		}
		before[node], fresh[node], changes = old, b, append(changes, c)
	}
	if len(changes) == 0 {
		return 0, nil, nil
	}
	if t, err = store(changes...); err != nil {
		return 0, nil, err
	}
	n.replace(fresh)
	return t, before, nil
}

// restore reverts a change whose write failed. It also writes the earlier values, since the disk
// may have the change despite the error.
func (n *NextBoots) restore(before map[string]nextBoot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.replace(before)
	for node, b := range before {
		c, _ := n.stored(node, b) // it was stored before
		n.engine.Async(c)
	}
}

// stored returns the change that stores the value of a node, or removes one without What.
func (n *NextBoots) stored(node string, b nextBoot) (wal.Change, error) {
	if b.What == "" {
		return n.remove(node), nil
	}
	return n.set(node, b)
}

// replace sets values in RAM, and removes those without What. It requires that the lock is held.
func (n *NextBoots) replace(values map[string]nextBoot) {
	for node, b := range values {
		if n.values[node] = b; b.What == "" {
			delete(n.values, node)
		}
	}
}
