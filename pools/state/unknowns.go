package state

import (
	"bytes"
	"cmp"
	"slices"

	"drover/pools"
	"drover/pools/state/wal"
)

// maxUnknowns bounds the unknown machines that are kept. Anyone can make one
// up with a single packet; a page cannot show more of them anyway.
const maxUnknowns = 4096

// maxText bounds each text that an unknown machine sends, in bytes.
const maxText = 128

// spareUnknowns is how many more there can be before the oldest are dropped, all at
// once: a search for the oldest goes through all.
const spareUnknowns = 1024

// flushChunk is how many machines of a flush are stored together, so that a long
// flush does not hold up the writes that somebody waits for.
const flushChunk = 256

// Unknowns keeps the machines that asked for an address and that no node declares,
// the latest of them. It learns of every DISCOVER, so that it writes only every few
// seconds: a crash loses what was seen since.
type Unknowns struct {
	rows[unknown]                 // by MAC, its 6 bytes
	dirty         map[string]bool // not stored as they are, or gone
}

type unknown struct {
	pools.Unknown
	stored bool
}

func rowOf(mac pools.MAC) string { return string(mac[:]) }

func (u *Unknowns) load(key, value []byte) error {
	err := u.rows.load(key, value)
	m := u.values[string(key)]
	m.stored = true
	u.values[string(key)] = m
	return err
}

// Seen notes that a machine asked. When it did before, First stays and Count
// adds up; the rest is as it says now. A Count of zero is one.
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
		seen.First, seen.Count = old.First, old.Count+seen.Count
	}
	u.values[key] = unknown{seen, old.stored}
	u.dirty[key] = true
	if len(u.values) >= maxUnknowns+spareUnknowns {
		u.dropOldest()
	}
}

// dropOldest forgets the machines that are too many. It expects the lock to be held.
func (u *Unknowns) dropOldest() {
	var last []int64
	for _, m := range u.values {
		last = append(last, m.Last.UnixNano())
	}
	slices.Sort(last)
	n := len(last) - maxUnknowns
	for key, m := range u.values {
		if n > 0 && m.Last.UnixNano() <= last[len(last)-maxUnknowns-1] {
			u.drop(key)
			n--
		}
	}
}

// drop forgets a machine. It expects the lock to be held.
func (u *Unknowns) drop(key string) {
	delete(u.dirty, key)
	if u.values[key].stored {
		u.dirty[key] = true
	}
	delete(u.values, key)
}

// newest returns all machines, the one seen last first. It expects the lock to be held.
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

// List returns the machines, the one seen last first.
func (u *Unknowns) List() []pools.Unknown {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.newest()
	return all[:min(len(all), maxUnknowns)]
}

// Forget removes a machine; it returns false when it is not there. It comes back when
// it asks again.
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

// Flush stores what was seen since the last one. The store calls it every few
// seconds and when it closes. What the queue does not take waits on.
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

// flushSome puts some machines into the queue. The wal.Ticket is 0 when there are none.
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
