package state

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/pools"
	"drover/state/wal"
)

// Audit keeps the newest actions of users, in their order.
//
// Where there is no room, the oldest entry goes of the share that has the most. A client has two
// shares, for its actions on nodes and for all others. So nobody can push out what others have
// done, and nobody hides a new token behind changes of nodes.
type Audit struct {
	rows[pools.AuditEntry]                     // by auditKey
	next                   uint64              // number of the next entry
	order                  []uint64            // numbers of the entries and of removed ones, the oldest first
	shares                 map[string][]uint64 // numbers of the entries of each share, the oldest first
}

func newAudit(e engine) *Audit {
	return &Audit{rows: newRows[pools.AuditEntry](e, tableAudit), shares: map[string][]uint64{}}
}

func auditKey(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// shareOf returns the share of an entry: whose action it is, without the address, and whether
// it is one on a node.
func shareOf(e pools.AuditEntry) string {
	who, _, _ := strings.Cut(e.Actor, " from ")
	if e.Node != "" {
		return who + " on nodes"
	}
	return who
}

// load adds an entry. It gives it the next number, since a damaged key could have any.
func (a *Audit) load(_, value []byte) error {
	key := auditKey(a.next)
	if err := a.rows.load([]byte(key), value); err != nil {
		return err
	}
	a.append(a.values[key])
	return nil
}

// append gives an entry that has been stored the next number.
func (a *Audit) append(e pools.AuditEntry) {
	share := shareOf(e)
	a.values[auditKey(a.next)] = e
	a.order = append(a.order, a.next)
	a.shares[share] = append(a.shares[share], a.next)
	a.next++
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
	var changes []wal.Change
	for i, e := range entries {
		c, err := a.set(auditKey(a.next+uint64(i)), e)
		if err != nil {
			return 0, err
		}
		changes = append(changes, c)
	}
	victims := a.victims(entries)
	for _, n := range victims {
		changes = append(changes, a.remove(auditKey(n)))
	}
	t, err := a.engine.Put(changes...)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		a.append(e)
	}
	for _, n := range victims {
		share := shareOf(a.values[auditKey(n)])
		if a.shares[share] = a.shares[share][1:]; len(a.shares[share]) == 0 {
			delete(a.shares, share)
		}
		delete(a.values, auditKey(n))
	}
	if len(a.order) > 2*pools.MaxAudit {
		a.order = slices.DeleteFunc(a.order, a.removed)
	}
	return t, nil
}

// victims returns the numbers of the entries, also of new ones, that make room for new ones.
func (a *Audit) victims(entries []pools.AuditEntry) (numbers []uint64) {
	tooMany := len(a.values) + len(entries) - pools.MaxAudit
	if tooMany <= 0 {
		return nil
	}
	shares, fresh := maps.Clone(a.shares), map[string][]uint64{}
	for i, e := range entries {
		share := shareOf(e)
		fresh[share] = append(fresh[share], a.next+uint64(i))
	}
	for share, of := range fresh {
		shares[share] = slices.Concat(shares[share], of)
	}
	for range tooMany {
		var most string
		for share, of := range shares {
			if n := len(shares[most]); len(of) > n || len(of) == n && of[0] < shares[most][0] {
				most = share
			}
		}
		numbers = append(numbers, shares[most][0])
		shares[most] = shares[most][1:]
	}
	return numbers
}

func (a *Audit) removed(n uint64) bool {
	_, ok := a.values[auditKey(n)]
	return !ok
}

// List returns at most limit entries, the newest first.
func (a *Audit) List(limit int) ([]pools.AuditEntry, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []pools.AuditEntry{}
	for _, n := range slices.Backward(a.order) {
		if len(all) == limit {
			break
		}
		if e, ok := a.values[auditKey(n)]; ok {
			all = append(all, e)
		}
	}
	return all, nil
}
