package state

import (
	"fmt"

	"go.etcd.io/bbolt"
)

// maxBatch bounds how many writes share a transaction. At a few hundred bytes
// each that is well below the size at which one transaction's pages take
// longer to write than to sync.
const maxBatch = 1024

// op is one change of the file. A nil value deletes the key.
type op struct {
	bucket, key, value []byte
}

// write is a set of changes that become durable together or not at all.
type write struct {
	ops  []op
	done chan error // gets the result once
}

// wait returns when the write is durable, or why it is not.
func (w *write) wait() error { return <-w.done }

// enqueue puts a write in line. Who holds the lock of a part while calling it
// gets the order of that lock into the file; wait after the unlock.
func (s *Store) enqueue(ops ...op) *write {
	if err := check(ops); err != nil {
		return failed(err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return failed(ErrClosed)
	}
	w := &write{ops: ops, done: make(chan error, 1)}
	s.queue <- w
	return w
}

// check refuses what bbolt would refuse, before it can spoil the transaction
// of others.
func check(ops []op) error {
	for _, o := range ops {
		switch {
		case len(o.key) == 0 || len(o.key) > bbolt.MaxKeySize:
			return fmt.Errorf("a key of %d bytes in %s (want 1 to %d)", len(o.key), o.bucket, bbolt.MaxKeySize)
		case len(o.value) > bbolt.MaxValueSize:
			return fmt.Errorf("a value of %d bytes in %s", len(o.value), o.bucket)
		}
	}
	return nil
}

// commitLoop is the one goroutine that writes. It takes the write that came
// first and all that have gathered behind it into one transaction.
func (s *Store) commitLoop() {
	defer close(s.done)
	for first := range s.queue {
		batch := s.gather(first)
		err := s.db.Update(func(tx *bbolt.Tx) error { return apply(tx, batch) })
		if err != nil {
			err = fmt.Errorf("%s: %w", s.db.Path(), err)
		}
		for _, w := range batch {
			w.done <- err
		}
	}
}

func (s *Store) gather(first *write) []*write {
	batch := []*write{first}
	for len(batch) < maxBatch {
		select {
		case w, ok := <-s.queue:
			if !ok {
				return batch
			}
			batch = append(batch, w)
		default:
			return batch
		}
	}
	return batch
}

func apply(tx *bbolt.Tx, batch []*write) error {
	for _, w := range batch {
		for _, o := range w.ops {
			b := tx.Bucket(o.bucket)
			var err error
			if o.value == nil {
				err = b.Delete(o.key)
			} else {
				err = b.Put(o.key, o.value)
			}
			if err != nil {
				return fmt.Errorf("%s %q: %w", o.bucket, o.key, err)
			}
		}
	}
	return nil
}

// failed is a write that never got into line.
func failed(err error) *write {
	w := &write{done: make(chan error, 1)}
	w.done <- err
	return w
}
