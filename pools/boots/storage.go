package boots

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"drover/pools"
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
// that a long flush does not delay the writes that a request waits for.
const flushChunk = 256

// value returns the stored form of a boot. It does not have a nonce that was issued
// while the storage was unavailable before a key has claimed it: after a restart nobody
// could then tell that the boot is claimed, and any key could.
func (b *boot) value() ([]byte, error) {
	if b.unstored && b.KeyHash == nil {
		c := *b
		c.NonceHash = nil
		return json.Marshal(&c)
	}
	return json.Marshal(b)
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
	b.bound = b.KeyHash != nil
	if mac, ok := pools.CatchAllMAC(b.Record.Node); ok && mac == b.Record.MAC {
		b.Record.Unknown = true // older versions did not store it
	}
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

// put enqueues a boot as it is now. It requires that the lock is held; the caller
// waits after the unlock. A boot that cannot be enqueued stays dirty.
func (t *Table) put(b *boot) (wait func() error, err error) {
	t.dirty[b] = true
	value, err := b.value()
	if err != nil {
		return nil, err
	}
	wait, err = t.storage.Enqueue(Change{b.Record.ID, value})
	if err == nil {
		delete(t.dirty, b)
	}
	return wait, err
}

// Flush stores the steps that are only in RAM. After an error they stay for the
// next flush.
func (t *Table) Flush() error {
	t.mu.Lock()
	dirty, dropped := t.dirty, t.dropped
	t.dirty, t.dropped = make(map[*boot]bool), nil
	changes := slices.Clone(dropped)
	var errs []error
	for b := range dirty {
		value, err := b.value()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		changes = append(changes, Change{b.Record.ID, value})
	}
	var waits []func() error
	for chunk := range slices.Chunk(changes, flushChunk) {
		wait, err := t.storage.Enqueue(chunk...)
		if err != nil {
			errs = append(errs, err)
			break
		}
		waits = append(waits, wait)
	}
	t.mu.Unlock()

	for _, wait := range waits {
		errs = append(errs, wait())
	}
	err := errors.Join(errs...)
	if err != nil {
		t.retry(dirty, dropped)
	}
	return err
}

// retry puts back the changes of a failed flush, except those of boots that were
// dropped since.
func (t *Table) retry(dirty map[*boot]bool, dropped []Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped = append(dropped, t.dropped...)
	for b := range dirty {
		if b.shelf != nil {
			t.dirty[b] = true
		}
	}
}
