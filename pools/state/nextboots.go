package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"drover/pools"
	"drover/pools/boots"
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

	engine engine
	mu     sync.Mutex // held by changes
	// byNode is replaced, never changed: every packet reads it.
	byNode atomic.Pointer[map[string]nextBoot]
}

// nextBoot is what the file holds of a node.
type nextBoot struct {
	What  pools.NextBoot `json:"what"`
	Taken time.Time      `json:"taken,omitzero"` // when a boot took it last; zero: none has
}

func newNextBoots(e engine, now func() time.Time) *NextBoots {
	n := &NextBoots{Now: now, engine: e}
	n.byNode.Store(&map[string]nextBoot{})
	return n
}

func (n *NextBoots) load(key, value []byte) error {
	var b nextBoot
	if err := json.Unmarshal(value, &b); err != nil {
		return fmt.Errorf("next boot of %q: %w", key, err)
	}
	(*n.byNode.Load())[string(key)] = b
	return nil
}

func (n *NextBoots) each(put func(key, value []byte), _ func() error) error {
	for node, b := range *n.byNode.Load() {
		value, err := json.Marshal(b)
		if err != nil {
			return err
		}
		put([]byte(node), value)
	}
	return nil
}

// Of returns what the boot that is under way, or comes next, does; empty:
// nothing out of the ordinary.
func (n *NextBoots) Of(node string) pools.NextBoot {
	all := *n.byNode.Load()
	if len(all) == 0 {
		return ""
	}
	if b := all[node]; !n.over(b) {
		return b.What
	}
	return ""
}

// Pending returns what no boot has taken yet.
func (n *NextBoots) Pending(node string) pools.NextBoot {
	if b := (*n.byNode.Load())[node]; b.Taken.IsZero() {
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

// Discover notes that the firmware of a node asked for an address. It ends what a
// boot took before. It waits for no disk: when a crash forgets it, the clock ends
// what the boot took.
func (n *NextBoots) Discover(node string) {
	if (*n.byNode.Load())[node].Taken.IsZero() {
		return
	}
	_ = n.change(node, func(nextBoot) nextBoot { return nextBoot{} }, func(c change) error {
		n.engine.async(c)
		return nil
	})
}

func (n *NextBoots) durably(node string, edit func(nextBoot) nextBoot) error {
	var t ticket
	err := n.change(node, edit, func(c change) (err error) {
		t, err = n.engine.put(c)
		return err
	})
	if err == nil {
		err = n.engine.wait(t)
	}
	if err != nil {
		return fmt.Errorf("next boot of %q: %w", node, err)
	}
	return nil
}

// change puts what edit returns in the place of what a node has, once store has
// taken it. A nextBoot without What is none.
func (n *NextBoots) change(node string, edit func(nextBoot) nextBoot, store func(change) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := maps.Clone(*n.byNode.Load())
	old, there := all[node]
	b := edit(old)
	c := change{table: tableNext, key: []byte(node)}
	switch {
	case b.What != "":
		var err error
		if c.value, err = json.Marshal(b); err != nil {
			return err
		}
		all[node] = b
	case !there:
		return nil
	default:
		delete(all, node)
	}
	if err := store(c); err != nil {
		return err
	}
	n.byNode.Store(&all)
	return nil
}
