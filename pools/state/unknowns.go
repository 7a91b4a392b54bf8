package state

import (
	"bytes"
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"drover/pools"
)

// maxUnknowns bounds the unknown machines that are kept. Anyone can make one
// up with a single packet; a page cannot show more of them anyway.
const maxUnknowns = 4096

// maxTold bounds each text that an unknown machine tells of itself, in bytes.
const maxTold = 128

// flushChunk is how many machines of a flush are stored together, so that a long
// flush does not hold up the writes that somebody waits for.
const flushChunk = 256

// Unknowns keeps the machines that asked for an address and that no node declares,
// the latest of them. It learns of every DISCOVER, so that it writes only every few
// seconds: a crash loses what was seen since.
type Unknowns struct {
	engine engine

	mu    sync.Mutex
	byMAC map[pools.MAC]*list.Element // of *unknown
	order list.List                   // the one seen last in front
	dirty map[pools.MAC]bool          // not stored as they are, or gone
}

type unknown struct {
	pools.Unknown
	stored bool
}

func newUnknowns(e engine) *Unknowns {
	return &Unknowns{engine: e, byMAC: make(map[pools.MAC]*list.Element), dirty: make(map[pools.MAC]bool)}
}

func (u *Unknowns) load(key, value []byte) error {
	m := &unknown{stored: true}
	if err := json.Unmarshal(value, &m.Unknown); err != nil {
		return fmt.Errorf("unknown machine %x: %w", key, err)
	}
	if !bytes.Equal(key, m.MAC[:]) {
		return fmt.Errorf("unknown machine %x: it says it is %s", key, m.MAC)
	}
	before := u.order.Front()
	for before != nil && !before.Value.(*unknown).Last.Before(m.Last) {
		before = before.Next()
	}
	if before == nil {
		u.byMAC[m.MAC] = u.order.PushBack(m)
	} else {
		u.byMAC[m.MAC] = u.order.InsertBefore(m, before)
	}
	u.bound()
	return nil
}

func (u *Unknowns) each(put func(key, value []byte), between func() error) error {
	var err error
	ended := visit(&u.mu, u.byMAC, func(mac pools.MAC, e *list.Element) {
		m := e.Value.(*unknown)
		value, e2 := json.Marshal(m.Unknown)
		err = errors.Join(err, e2)
		m.stored = true
		put(mac[:], value)
	}, between)
	return errors.Join(err, ended)
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
		e = u.order.PushFront(&unknown{})
		u.byMAC[seen.MAC] = e
		u.bound()
	} else {
		old := e.Value.(*unknown)
		seen.First, seen.Count = old.First, old.Count+seen.Count
		u.order.MoveToFront(e)
	}
	e.Value.(*unknown).Unknown = seen
	u.dirty[seen.MAC] = true
}

// bound forgets the machine that was not seen for the longest time when there are
// too many.
func (u *Unknowns) bound() {
	if u.order.Len() > maxUnknowns {
		u.remove(u.order.Back())
	}
}

func (u *Unknowns) remove(e *list.Element) {
	m := e.Value.(*unknown)
	u.order.Remove(e)
	delete(u.byMAC, m.MAC)
	if delete(u.dirty, m.MAC); m.stored {
		u.dirty[m.MAC] = true
	}
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
	u.remove(e)
	delete(u.dirty, mac)
	u.engine.async(change{table: tableUnknowns, key: mac[:]})
	return true
}

// Flush stores what was seen since the last one. The store calls it every few
// seconds and when it closes. What the queue does not take waits on.
func (u *Unknowns) Flush() error {
	for {
		t, n, err := u.flushSome()
		if err != nil || n == 0 {
			return err
		}
		if err := u.engine.wait(t); err != nil {
			return err
		}
	}
}

// flushSome puts some machines into the queue, and says how many.
func (u *Unknowns) flushSome() (t ticket, n int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var changes []change
	for mac := range u.dirty {
		if len(changes) == flushChunk {
			break
		}
		c := change{table: tableUnknowns, key: mac[:]}
		if e := u.byMAC[mac]; e != nil {
			if c.value, err = json.Marshal(e.Value.(*unknown).Unknown); err != nil {
				return 0, 0, err
			}
		}
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return 0, 0, nil
	}
	if t, err = u.engine.put(changes...); err != nil {
		return 0, 0, err
	}
	for _, c := range changes {
		mac := pools.MAC(c.key)
		if delete(u.dirty, mac); c.value != nil {
			u.byMAC[mac].Value.(*unknown).stored = true
		}
	}
	return t, len(changes), nil
}
