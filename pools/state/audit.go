package state

import (
	"encoding/binary"
	"fmt"

	"drover/pools"
	"drover/pools/state/wal"
)

// Audit keeps the newest actions of users, in their order.
type Audit struct {
	rows[pools.AuditEntry]        // by auditKey
	first, next            uint64 // numbers of the oldest and of the next entry
}

func auditKey(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// load adds an entry. It gives it the next number, since a damaged key could have any.
func (a *Audit) load(_, value []byte) error {
	if err := a.rows.load([]byte(auditKey(a.next)), value); err != nil {
		return err
	}
	a.next++
	return nil
}

// Add appends entries, durably.
func (a *Audit) Add(entries ...pools.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	t, err := a.add(entries)
	if err == nil {
		err = a.engine.Wait(t)
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

func (a *Audit) add(entries []pools.AuditEntry) (wal.Ticket, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, next := a.first, a.next
	var changes []wal.Change
	for _, e := range entries {
		c, err := a.set(auditKey(next), e)
		if err != nil {
			return 0, err
		}
		changes = append(changes, c)
		for next++; next-first > pools.MaxAudit; first++ {
			changes = append(changes, a.remove(auditKey(first)))
		}
	}
	t, err := a.engine.Put(changes...)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		a.values[auditKey(a.next)] = e
		a.next++
	}
	for ; a.first < first; a.first++ {
		delete(a.values, auditKey(a.first))
	}
	return t, nil
}

// List returns at most limit entries, the newest first.
func (a *Audit) List(limit int) ([]pools.AuditEntry, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []pools.AuditEntry{}
	for n := a.next; n > a.first && len(all) < limit; n-- {
		if e, ok := a.values[auditKey(n-1)]; ok {
			all = append(all, e)
		}
	}
	return all, nil
}
