package boots

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"drover/internal/wait"
)

// ErrUnavailable is the error of a [Storage] that cannot store changes at present: the
// disk is full, broken or hangs.
var ErrUnavailable = errors.New("boots cannot be stored at present")

// Storage makes boots durable.
type Storage interface {
	// Enqueue queues changes, in the order of the calls. The changes of one call
	// become durable together or not at all. It is called with a lock held, so it
	// never waits: when the queue is full, it returns an error. wait returns nil
	// once the changes are durable, or the error for which they are not. An error
	// of the disk wraps [ErrUnavailable].
	Enqueue(changes ...Change) (wait func() error, err error)
}

// Change is a boot to store, or to delete when Value is nil. The value is JSON. It
// contains no secret: nonces and keys are stored as hashes.
type Change struct {
	ID    string
	Value []byte
}

// flushChunk is the number of boots that a flush stores together. It is small, so
// that a long flush does not delay requests that wait for the lock, or for writes.
const flushChunk = 256

// value returns the stored form of a boot. It does not have a nonce that was issued
// while the storage was unavailable before a key has claimed it: after a restart nobody
// could then tell that the boot is claimed, and any key could.
func (b *boot) value() ([]byte, error) {
	if b.KeyHash != nil {
		return json.Marshal(b)
	}
	c := *b
	c.setNonces(slices.DeleteFunc(b.nonces(), func(n nonce) bool { return n.unstored }))
	return json.Marshal(&c)
}

// Load adds a stored boot. It is called in the order of the IDs, before any other
// method.
func (t *Table) Load(id string, value []byte) error {
	b := &boot{}
	if err := json.Unmarshal(value, b); err != nil {
		return fmt.Errorf("boot %q: %w", id, err)
	}
	if b.Record.ID != id {
		return fmt.Errorf("boot %q: its record has the ID %q", id, b.Record.ID)
	}
	at, err := time.Parse(idFormat, id[:min(len(id), len(idFormat))])
	if err != nil {
		return fmt.Errorf("boot %q: invalid ID of a boot: %w", id, err)
	}
	b.bound, b.enqueued = b.KeyHash != nil, true
	t.last = at
	t.add(b)
	return nil
}

// Each calls visit with each boot while it holds the lock. After the boots of each
// machine it calls between without the lock; an error of between ends the iteration.
// A boot that changes meanwhile is visited in its old or its new state.
func (t *Table) Each(visit func(Change), between func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.byMAC {
		for _, b := range all {
			value, err := b.value()
			if err != nil {
				return err
			}
			visit(Change{b.Record.ID, value})
		}
		t.mu.Unlock()
		err := between()
		t.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// put enqueues boots as they are now, together. It requires that the lock is held; the
// caller waits after the unlock. Boots that cannot be enqueued stay dirty.
func (t *Table) put(all ...*boot) (wait func() error, err error) {
	changes := make([]Change, 0, 1)
	for _, b := range all {
		t.dirty[b] = true
		value, err := b.value()
		if err != nil {
			return nil, err
		}
		changes = append(changes, Change{b.Record.ID, value})
	}
	wait, err = t.storage.Enqueue(changes...)
	if err != nil {
		return wait, err
	}
	for _, b := range all {
		b.enqueued = true
		delete(t.dirty, b)
	}
	return wait, nil
}

// chunk is what a flush stores together.
type chunk struct {
	deleted []string // IDs
	boots   []*boot
	wait    func() error
}

// Flush stores the steps that are only in RAM. What the storage does not take stays for the
// next flush, which goes on there: a backlog that is longer than the queue of the storage
// is stored by several flushes. So do boots that change meanwhile, since Flush gives way between
// chunks. Flush returns the first error.
func (t *Table) Flush() error {
	var queued []chunk
	var failed error
	var pace wait.Pace
	t.mu.Lock()
	for left := len(t.deleted) + len(t.dirty); left > 0 && len(t.deleted)+len(t.dirty) > 0; left -= flushChunk {
		c, changes, err := t.nextChunk()
		failed = cmp.Or(failed, err)
		if c.wait, err = t.storage.Enqueue(changes...); err != nil {
			failed = cmp.Or(failed, err)
			t.putBack(c)
			break
		}
		for _, b := range c.boots {
			b.enqueued = true
		}
		queued = append(queued, c)
		t.mu.Unlock()
		pace.Step()
		t.mu.Lock()
	}
	t.mu.Unlock()

	for _, c := range queued {
		if err := c.wait(); err != nil {
			failed = cmp.Or(failed, err)
			t.mu.Lock()
			t.putBack(c)
			t.mu.Unlock()
		}
	}
	return failed
}

// nextChunk takes changes that are only in RAM, the deletions first. A boot that has no
// stored form, for which the error is, waits for its next change. nextChunk requires that the
// lock is held.
func (t *Table) nextChunk() (c chunk, changes []Change, err error) {
	n := min(len(t.deleted), flushChunk)
	c.deleted, t.deleted = t.deleted[:n:n], t.deleted[n:]
	for _, id := range c.deleted {
		changes = append(changes, Change{ID: id})
	}
	for b := range t.dirty {
		if len(changes) == flushChunk {
			break
		}
		delete(t.dirty, b)
		value, wrong := b.value()
		if wrong != nil {
			err = wrong
			continue
		}
		changes = append(changes, Change{b.Record.ID, value})
		c.boots = append(c.boots, b)
	}
	return c, changes, err
}

// putBack keeps a chunk that was not stored for the next flush. It requires that the lock is
// held.
func (t *Table) putBack(c chunk) {
	t.deleted = slices.Concat(c.deleted, t.deleted)
	for _, b := range c.boots {
		t.mark(b)
	}
}

// mark keeps a boot for the next flush unless it was dropped.
func (t *Table) mark(b *boot) {
	if b.shelf != nil {
		t.dirty[b] = true
	}
}

// maxDeleted limits the deletions that wait for the storage.
const maxDeleted = knownLimit

// deleteStored deletes a boot from the storage with the next flush, if it may be there. While
// the storage takes no changes, the oldest deletions are given up when they are too many. At
// worst such a boot is loaded again; it is the oldest of its machine, and among the first to
// be dropped.
func (t *Table) deleteStored(b *boot) {
	if !b.enqueued {
		return
	}
	t.deleted = append(t.deleted, b.Record.ID)
	if n := len(t.deleted); n > maxDeleted {
		t.deleted = slices.Clone(t.deleted[n-maxDeleted/2:])
	}
}
