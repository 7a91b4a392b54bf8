package state

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"drover/pools"
)

// maxAudit is how many entries are kept. A chassis that is switched is one for
// each of its nodes.
const maxAudit = 20_000

// Audit keeps who did what, in the order in which it was done. The oldest
// entries make room for new ones.
type Audit struct {
	store *Store
	mu    sync.Mutex
	next  uint64 // number of the next entry
	first uint64 // of the oldest that is kept
}

// load finds out where the numbers are.
func (a *Audit) load(b *bbolt.Bucket) error {
	c := b.Cursor()
	first, _ := c.First()
	last, _ := c.Last()
	for _, key := range [][]byte{first, last} {
		if key != nil && len(key) != 8 {
			return fmt.Errorf("audit: a key of %d bytes, want 8", len(key))
		}
	}
	if first != nil {
		a.first, a.next = binary.BigEndian.Uint64(first), binary.BigEndian.Uint64(last)+1
	}
	return nil
}

// Add keeps entries. They are durable when it returns.
func (a *Audit) Add(entries ...pools.AuditEntry) error {
	w, err := a.enqueue(entries)
	if err != nil {
		return err
	}
	return w.wait()
}

func (a *Audit) enqueue(entries []pools.AuditEntry) (*write, error) {
	var ops []op
	a.mu.Lock()
	defer a.mu.Unlock()
	next, first := a.next, a.first
	for _, e := range entries {
		value, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		ops = append(ops, op{bucketAudit, binary.BigEndian.AppendUint64(nil, next), value})
		for next++; next-first > maxAudit; first++ {
			ops = append(ops, op{bucket: bucketAudit, key: binary.BigEndian.AppendUint64(nil, first)})
		}
	}
	if len(ops) == 0 {
		return nil, nil //nolint:nilnil // the nil write is done
	}
	a.next, a.first = next, first
	return a.store.enqueue(ops...), nil
}

// List returns the newest entries, the newest first, limit at most.
func (a *Audit) List(limit int) ([]pools.AuditEntry, error) {
	all := []pools.AuditEntry{}
	err := a.store.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketAudit).Cursor()
		for key, value := c.Last(); key != nil && len(all) < limit; key, value = c.Prev() {
			var e pools.AuditEntry
			if err := json.Unmarshal(value, &e); err != nil {
				return fmt.Errorf("%s: audit entry %x: %w", a.store.db.Path(), key, err)
			}
			all = append(all, e)
		}
		return nil
	})
	return all, err
}
