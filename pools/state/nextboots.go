package state

import (
	"fmt"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/state/wal"
)

// NextBoots keeps what nodes do at their next boot, once.
//
// A boot takes it with its script, and keeps it: whatever the boot asks again
// gets the same answer. The next DISCOVER of the firmware, which is another
// boot, ends it. Where this server sees no DISCOVERs, or the machine is long in
// asking again, the clock does.
type NextBoots struct {
	// Now is the clock.
	Now func() time.Time

	rows[nextBoot] // by node
}

// nextBoot is what the file holds of a node.
type nextBoot struct {
	What  pools.NextBoot `json:"what"`
	Taken time.Time      `json:"taken,omitzero"` // when a boot took it last; zero: none has
}

// Of returns what the boot that is under way, or comes next, does; empty:
// nothing out of the ordinary.
func (n *NextBoots) Of(node string) pools.NextBoot {
	if b := n.get(node); !n.over(b) {
		return b.What
	}
	return ""
}

// Pending returns what no boot has taken yet.
func (n *NextBoots) Pending(node string) pools.NextBoot {
	if b := n.get(node); b.Taken.IsZero() {
		return b.What
	}
	return ""
}

// over reports whether the boot that took b must be over.
func (n *NextBoots) over(b nextBoot) bool {
	return !b.Taken.IsZero() && n.Now().Sub(b.Taken) > boots.FirmwarePhase
}

// Set sets what a node does at its next boot, durably. Empty is what its pool
// says.
func (n *NextBoots) Set(node string, what pools.NextBoot) error {
	return n.durably(node, func(nextBoot) nextBoot { return nextBoot{What: what} })
}

// Take notes, durably, that a boot got its script.
func (n *NextBoots) Take(node string) error {
	now := n.Now().UTC()
	return n.durably(node, func(b nextBoot) nextBoot {
		b.Taken = now
		return b
	})
}

func (n *NextBoots) durably(node string, edit func(nextBoot) nextBoot) error {
	t, err := n.change(node, edit, n.engine.Put)
	if err == nil {
		err = n.engine.Wait(t)
	}
	if err != nil {
		return fmt.Errorf("next boot of %q: %w", node, err)
	}
	return nil
}

// Discover notes that the firmware of a node asked for an address. It ends what a
// boot took before. It waits for no disk: when a crash forgets it, the clock ends
// what the boot took.
func (n *NextBoots) Discover(node string) {
	if n.get(node).Taken.IsZero() {
		return
	}
	_, _ = n.change(node, func(nextBoot) nextBoot { return nextBoot{} }, func(c ...wal.Change) (wal.Ticket, error) {
		n.engine.Async(c...)
		return 0, nil
	})
}

// change puts what edit returns in the place of what a node has, once store has
// taken it. A nextBoot without What is none.
func (n *NextBoots) change(node string, edit func(nextBoot) nextBoot, store func(...wal.Change) (wal.Ticket, error)) (t wal.Ticket, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, there := n.values[node]
	b, c := edit(old), n.remove(node)
	if b.What == "" && !there {
		return 0, nil
	}
	if b.What != "" {
		if c, err = n.set(node, b); err != nil {
			return 0, err
		}
	}
	if t, err = store(c); err != nil {
		return 0, err
	}
	if n.values[node] = b; b.What == "" {
		delete(n.values, node)
	}
	return t, nil
}
