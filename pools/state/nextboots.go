package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

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

	store *Store
	mu    sync.Mutex // held by changes
	// byNode is replaced, never changed: every packet reads it.
	byNode atomic.Pointer[map[string]nextBoot]
}

// nextBoot is what the file holds of a node.
type nextBoot struct {
	What  pools.NextBoot `json:"what"`
	Taken time.Time      `json:"taken,omitzero"` // when a boot took it last; zero: none has
}

func newNextBoots(s *Store, now func() time.Time) *NextBoots {
	n := &NextBoots{Now: now, store: s}
	n.byNode.Store(&map[string]nextBoot{})
	return n
}

func (n *NextBoots) load(bucket *bbolt.Bucket) error {
	all := map[string]nextBoot{}
	err := bucket.ForEach(func(key, value []byte) error {
		var b nextBoot
		if err := json.Unmarshal(value, &b); err != nil {
			return fmt.Errorf("next boot of %q: %w", key, err)
		}
		all[string(key)] = b
		return nil
	})
	n.byNode.Store(&all)
	return err
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

// over tells whether the boot that took b must be over.
func (n *NextBoots) over(b nextBoot) bool {
	return !b.Taken.IsZero() && n.Now().Sub(b.Taken) > boots.FirmwarePhase
}

// Set sets what a node does at its next boot, durably. Empty is what its pool
// says.
func (n *NextBoots) Set(node string, what pools.NextBoot) error {
	return n.change(node, func(nextBoot) nextBoot { return nextBoot{What: what} })
}

// Take notes, durably, that a boot got its script.
func (n *NextBoots) Take(node string) error {
	now := n.Now().UTC()
	return n.change(node, func(b nextBoot) nextBoot {
		b.Taken = now
		return b
	})
}

// Discover notes that the firmware of a node asked for an address. It ends what
// a boot took before.
func (n *NextBoots) Discover(node string) {
	if (*n.byNode.Load())[node].Taken.IsZero() {
		return
	}
	if err := n.change(node, func(nextBoot) nextBoot { return nextBoot{} }); err != nil {
		n.store.log.Error("not stored", "what", "the end of a next boot", "node", node, "err", err)
	}
}

// change puts what edit returns in the place of what a node has. A nextBoot
// without What is none.
func (n *NextBoots) change(node string, edit func(nextBoot) nextBoot) error {
	n.mu.Lock()
	all := maps.Clone(*n.byNode.Load())
	old, there := all[node]
	b := edit(old)
	o := op{bucket: bucketNext, key: []byte(node)}
	if b.What == "" {
		delete(all, node)
		if !there {
			n.mu.Unlock()
			return nil
		}
	} else {
		value, err := json.Marshal(b)
		if err != nil {
			n.mu.Unlock()
			return err
		}
		o.value, all[node] = value, b
	}
	n.byNode.Store(&all)
	w := n.store.enqueue(o)
	n.mu.Unlock()
	if err := w.wait(); err != nil {
		return fmt.Errorf("next boot of %q: %w", node, err)
	}
	return nil
}
