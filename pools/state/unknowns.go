package state

import (
	"container/list"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"drover/pools"
)

// maxUnknowns bounds the unknown machines that are kept. Anyone can make one
// up with a single packet; a page cannot show more of them anyway.
const maxUnknowns = 4096

// maxTold bounds each text that an unknown machine tells of itself, in bytes.
const maxTold = 128

// Unknowns keeps the machines that asked for an address and that no node
// declares, the latest of them. It is told of every DISCOVER, so that it
// writes every few seconds, behind the back of its callers: a crash loses what
// was seen since.
//
// In the file each has one of the [maxUnknowns] slots. Who takes the place of
// the machine that was not seen for the longest time takes its slot, so that a
// flood of made up MACs writes over the same few pages.
type Unknowns struct {
	store *Store

	mu    sync.Mutex
	byMAC map[pools.MAC]*list.Element // of *unknown
	order list.List                   // the one seen last in front
	free  []uint16                    // slots
	dirty map[*unknown]bool           // not stored as they are
}

type unknown struct {
	pools.Unknown
	slot uint16
}

func newUnknowns(s *Store) *Unknowns {
	u := &Unknowns{store: s, byMAC: make(map[pools.MAC]*list.Element), dirty: make(map[*unknown]bool)}
	for slot := range uint16(maxUnknowns) {
		u.free = append(u.free, maxUnknowns-1-slot)
	}
	return u
}

// load reads the machines of the file. After a crash one may be in two slots;
// the later record counts.
func (u *Unknowns) load(b *bbolt.Bucket) error {
	var all []*unknown
	err := b.ForEach(func(key, value []byte) error {
		if len(key) != 2 || binary.BigEndian.Uint16(key) >= maxUnknowns {
			return fmt.Errorf("unknown machine %x: not a slot", key)
		}
		m := &unknown{slot: binary.BigEndian.Uint16(key)}
		if err := json.Unmarshal(value, &m.Unknown); err != nil {
			return fmt.Errorf("unknown machine %x: %w", key, err)
		}
		all = append(all, m)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b *unknown) int { return b.Last.Compare(a.Last) })
	taken := make(map[uint16]bool)
	for _, m := range all {
		if u.byMAC[m.MAC] == nil {
			u.byMAC[m.MAC] = u.order.PushBack(m)
			taken[m.slot] = true
		}
	}
	u.free = slices.DeleteFunc(u.free, func(slot uint16) bool { return taken[slot] })
	return nil
}

// Seen notes that a machine asked. When it did before, First stays and Count
// adds up; the rest is as it says now. A Count of zero is one.
func (u *Unknowns) Seen(seen pools.Unknown) {
	seen.Count = max(seen.Count, 1)
	if seen.First.IsZero() {
		seen.First = seen.Last
	}
	for _, s := range []*string{&seen.Pool, &seen.Class, &seen.Circuit, &seen.Remote} {
		*s = clip(*s, maxTold)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	e := u.byMAC[seen.MAC]
	if e == nil {
		e = u.order.PushFront(&unknown{slot: u.slot()})
		u.byMAC[seen.MAC] = e
	} else {
		old := e.Value.(*unknown)
		seen.First, seen.Count = old.First, old.Count+seen.Count
		u.order.MoveToFront(e)
	}
	m := e.Value.(*unknown)
	m.Unknown = seen
	u.dirty[m] = true
}

// slot returns a free slot, the oldest machine's when there is no other.
func (u *Unknowns) slot() uint16 {
	if len(u.free) == 0 {
		u.remove(u.order.Back())
	}
	last := len(u.free) - 1
	slot := u.free[last]
	u.free = u.free[:last]
	return slot
}

func (u *Unknowns) remove(e *list.Element) {
	m := e.Value.(*unknown)
	u.order.Remove(e)
	delete(u.byMAC, m.MAC)
	delete(u.dirty, m)
	u.free = append(u.free, m.slot)
}

// List returns all of them, the one seen last first.
func (u *Unknowns) List() []pools.Unknown {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]pools.Unknown, 0, u.order.Len())
	for e := u.order.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*unknown).Unknown)
	}
	return all
}

// Forget removes a machine; it returns false when it is not there. It comes
// back when it asks again.
func (u *Unknowns) Forget(mac pools.MAC) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := u.byMAC[mac]
	if e == nil {
		return false
	}
	u.store.behind("removal of unknown machine "+mac.String(), op{bucket: bucketUnknown, key: e.Value.(*unknown).key()})
	u.remove(e)
	return true
}

// Flush stores what was seen since the last one. The store calls it every few
// seconds and when it closes. What cannot be stored waits on.
func (u *Unknowns) Flush() error {
	u.mu.Lock()
	dirty := u.dirty
	u.dirty = make(map[*unknown]bool)
	ops := make([]op, 0, len(dirty))
	var errs []error
	for m := range dirty {
		value, err := json.Marshal(m.Unknown)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ops = append(ops, op{bucketUnknown, m.key(), value})
	}
	writes := u.store.enqueueChunks(ops)
	u.mu.Unlock()

	for _, w := range writes {
		errs = append(errs, w.wait())
	}
	err := errors.Join(errs...)
	if err != nil {
		u.retry(dirty)
	}
	return err
}

// retry has the next flush try again what a failed one took, unless it is gone
// since.
func (u *Unknowns) retry(dirty map[*unknown]bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for m := range dirty {
		if e := u.byMAC[m.MAC]; e != nil && e.Value == m {
			u.dirty[m] = true
		}
	}
}

func (m *unknown) key() []byte { return binary.BigEndian.AppendUint16(nil, m.slot) }
