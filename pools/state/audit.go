package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"drover/pools"
)

// maxAudit is how many entries are kept. A chassis that is switched is one for
// each of its nodes.
const maxAudit = 20_000

// Audit keeps who did what, in the order in which it was done. The oldest entries
// make room for new ones.
type Audit struct {
	engine  engine
	mu      sync.Mutex
	last    uint64       // number of the newest entry
	entries []auditEntry // the oldest first
}

// auditEntry is a numbered entry. A number can be missing: of an entry that was not
// stored.
type auditEntry struct {
	number uint64
	value  []byte // JSON of a pools.AuditEntry
}

func (e auditEntry) key() []byte { return binary.BigEndian.AppendUint64(nil, e.number) }

func (a *Audit) load(key, value []byte) error {
	if len(key) != 8 {
		return fmt.Errorf("audit: a key of %d bytes, want 8", len(key))
	}
	a.last = binary.BigEndian.Uint64(key)
	a.entries = append(a.entries, auditEntry{a.last, bytes.Clone(value)})
	return nil
}

func (a *Audit) each(put func(key, value []byte), between func() error) error {
	a.mu.Lock()
	all := slices.Clone(a.entries)
	a.mu.Unlock()
	for i, e := range all {
		put(e.key(), e.value)
		if i%visitChunk != 0 {
			continue
		}
		if err := between(); err != nil {
			return err
		}
	}
	return nil
}

// Add keeps entries. They are durable when it returns.
func (a *Audit) Add(entries ...pools.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	var values [][]byte
	for _, e := range entries {
		value, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		values = append(values, value)
	}
	t, err := a.add(values)
	if err == nil {
		err = a.engine.wait(t)
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

func (a *Audit) add(values [][]byte) (ticket, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.entries
	var changes []change
	for i, value := range values {
		e := auditEntry{a.last + 1 + uint64(i), value}
		all = append(all, e)
		changes = append(changes, change{tableAudit, e.key(), value})
	}
	drop := max(0, len(all)-maxAudit)
	for _, e := range all[:drop] {
		changes = append(changes, change{table: tableAudit, key: e.key()})
	}
	t, err := a.engine.put(changes...)
	if err == nil {
		a.last, a.entries = all[len(all)-1].number, all[drop:]
	}
	return t, err
}

// List returns the newest entries, the newest first, limit at most.
func (a *Audit) List(limit int) ([]pools.AuditEntry, error) {
	a.mu.Lock()
	entries := slices.Clone(a.entries[max(0, len(a.entries)-limit):])
	a.mu.Unlock()
	all := make([]pools.AuditEntry, len(entries))
	for i, e := range entries {
		if err := json.Unmarshal(e.value, &all[len(all)-1-i]); err != nil {
			return nil, fmt.Errorf("audit entry %d: %w", e.number, err)
		}
	}
	return all, nil
}
