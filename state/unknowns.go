package state

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"

	"drover/pools"
	"drover/state/wal"
)

// maxUnknowns limits the unknown machines. A single packet with an invented MAC adds one,
// and a page cannot show more of them.
const maxUnknowns = 4096

// maxText limits each text that an unknown machine sends, in bytes.
const maxText = 128

// surplusUnknowns is the number of machines beyond maxUnknowns at which the oldest are
// dropped, all at once, since a search for the oldest inspects all.
const surplusUnknowns = 1024

// flushChunk is the number of machines that a flush stores together. It is small, so
// that a long flush does not delay the writes that a request waits for.
const flushChunk = 256

// Unknowns keeps the newest machines that sent a DISCOVER and that no node declares.
// Every DISCOVER changes it, so it is stored only every few seconds, and a crash loses
// the changes since.
type Unknowns struct {
	rows[unknown]                 // by MAC, its 6 bytes
	dirty         map[string]bool // changed or dropped since they were stored
}

type unknown struct {
	pools.Unknown
	stored bool
}

func rowOf(mac pools.MAC) string { return string(mac[:]) }

func (u *Unknowns) load(key, value []byte) error {
	if err := u.rows.load(key, value); err != nil {
		return err
	}
	m := u.values[string(key)]
	m.stored = true
	u.values[string(key)] = m
	return nil
}

// Seen records a DISCOVER of a machine. For a known machine it keeps First and
// Inventory, adds up Count, and replaces all other fields. A Count of 0 means 1.
func (u *Unknowns) Seen(seen pools.Unknown) {
	seen.Count = max(seen.Count, 1)
	if seen.First.IsZero() {
		seen.First = seen.Last
	}
	for _, s := range []*string{&seen.Pool, &seen.Class, &seen.Circuit, &seen.Remote} {
		*s = clip(*s, maxText)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	key := rowOf(seen.MAC)
	old, known := u.values[key]
	if known {
		seen.First, seen.Count, seen.Inventory = old.First, old.Count+seen.Count, old.Inventory
	}
	u.values[key] = unknown{seen, old.stored}
	u.dirty[key] = true
	if len(u.values) >= maxUnknowns+surplusUnknowns {
		u.dropOldest(seen.Last)
	}
}

// Describe records the hardware of a machine. It returns false for one that is not known.
func (u *Unknowns) Describe(mac pools.MAC, v pools.Inventory) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := rowOf(mac)
	m, ok := u.values[key]
	if !ok {
		return false
	}
	m.Inventory = &v
	u.values[key] = m
	u.dirty[key] = true
	return true
}

// Hardware returns the hardware that a machine has reported, or nil. The caller must not
// change it.
func (u *Unknowns) Hardware(mac pools.MAC) *pools.Inventory {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.values[rowOf(mac)].Inventory
}

// dropOldest drops all but the newest maxUnknowns machines. Those from the future, when
// the clock was ahead, are the oldest. It requires that the lock is held.
func (u *Unknowns) dropOldest(now time.Time) {
	lastOf := func(m unknown) int64 {
		if m.Last.After(now.Add(maxStep)) {
			return math.MinInt64
		}
		return m.Last.UnixNano()
	}
	var last []int64
	for _, m := range u.values {
		last = append(last, lastOf(m))
	}
	slices.Sort(last)
	n := len(last) - maxUnknowns
	for key, m := range u.values {
		if n > 0 && lastOf(m) <= last[len(last)-maxUnknowns-1] {
			u.drop(key)
			n--
		}
	}
}

// drop removes a machine. It requires that the lock is held.
func (u *Unknowns) drop(key string) {
	delete(u.dirty, key)
	if u.values[key].stored {
		u.dirty[key] = true
	}
	delete(u.values, key)
}

// newest returns all machines, the newest first. It requires that the lock is held.
func (u *Unknowns) newest() []pools.Unknown {
	all := make([]pools.Unknown, 0, len(u.values))
	for _, m := range u.values {
		all = append(all, m.Unknown)
	}
	slices.SortFunc(all, func(a, b pools.Unknown) int {
		return cmp.Or(b.Last.Compare(a.Last), bytes.Compare(a.MAC[:], b.MAC[:]))
	})
	return all
}

// List returns the machines, the newest first.
func (u *Unknowns) List() []pools.Unknown {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.newest()
	return all[:min(len(all), maxUnknowns)]
}

// Forget removes a machine. It returns false for one that is not known. The next DISCOVER
// of the machine adds it again.
func (u *Unknowns) Forget(mac pools.MAC) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := rowOf(mac)
	if _, ok := u.values[key]; !ok {
		return false
	}
	u.drop(key)
	delete(u.dirty, key)
	u.engine.Async(u.remove(key))
	return true
}

// Flush stores the changes since the last Flush. The store calls it every few seconds and
// when it closes. Changes that the queue refuses stay for the next Flush.
func (u *Unknowns) Flush() error {
	for {
		t, err := u.flushSome()
		if err != nil || t == 0 {
			return err
		}
		if err := u.engine.Wait(t); err != nil {
			return err
		}
	}
}

// flushSome queues up to flushChunk machines. The ticket is 0 if there are none.
func (u *Unknowns) flushSome() (t wal.Ticket, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var changes []wal.Change
	for key := range u.dirty {
		if len(changes) == flushChunk {
			break
		}
		c := u.remove(key)
		if m, ok := u.values[key]; ok {
			if c, err = u.set(key, m); err != nil {
				return 0, err
			}
			m.stored = true
			u.values[key] = m
		}
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return 0, nil
	}
	if t, err = u.engine.Put(changes...); err == nil {
		for _, c := range changes {
			delete(u.dirty, string(c.Key))
		}
	}
	return t, err
}
