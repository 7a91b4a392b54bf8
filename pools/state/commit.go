package state

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// maxBatch bounds how many writes share a transaction. At a few hundred bytes
// each that is well below the size at which one transaction's pages take
// longer to write than to sync.
const maxBatch = 1024

// How far apart two commits are at least. One costs the processor 100 µs for a
// transaction, with its two fsyncs and the pages on the way to the root, and 40
// for the journal, however few writes it has: on a disk that syncs fast, each
// DHCPREQUEST would make its own. A write after a rest is not held up. The
// journal's is shorter than the time for which dhcp gathers packets: what has
// waited there does not wait again.
const (
	pace        = 4 * time.Millisecond
	journalPace = 5 * time.Millisecond
)

// flushChunk is how many changes of a flush share a write: so a great flush
// does not hold up the durable writes.
const flushChunk = 256

// op is one change of the file. A nil value deletes the key.
type op struct {
	bucket, key, value []byte
}

// write is a set of changes that become durable together or not at all.
type write struct {
	ops    []op       // until it is done
	behind string     // what it is, when nobody waits for it
	done   chan error // gets the result once
}

// wait returns when the write is durable, or why it is not. The nil write is
// in the file since Open.
func (w *write) wait() error {
	if w == nil {
		return nil
	}
	err := <-w.done
	w.done <- err // for who waits again
	return err
}

// lost tells whether the write is known to be lost.
func (w *write) lost() bool {
	if w == nil {
		return false
	}
	select {
	case err := <-w.done:
		w.done <- err
		return err != nil
	default:
		return false
	}
}

// enqueue puts a write in line. Who holds the lock of a part while calling it
// gets the order of that lock into the file; wait after the unlock. All changes
// of a write are of one part.
func (s *Store) enqueue(ops ...op) *write {
	w := &write{ops: ops, done: make(chan error, 1)}
	s.queueUp(w)
	return w
}

// behind enqueues what nobody waits for; what names it in the log when it
// cannot be stored.
func (s *Store) behind(what string, ops ...op) *write {
	w := &write{ops: ops, behind: what, done: make(chan error, 1)}
	s.queueUp(w)
	return w
}

// enqueueChunks enqueues many changes that need not become durable together.
func (s *Store) enqueueChunks(ops []op) []*write {
	var writes []*write
	for chunk := range slices.Chunk(ops, flushChunk) {
		writes = append(writes, s.enqueue(chunk...))
	}
	return writes
}

func (s *Store) queueUp(w *write) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err := check(w.ops)
	if s.closed {
		err = ErrClosed
	}
	switch {
	case err != nil:
		s.finish(w, err)
	case bytes.Equal(w.ops[0].bucket, bucketLeases):
		s.leases.queue <- w
	default:
		s.table.queue <- w
	}
}

// finish tells who waits for a write, or else the log, what became of it.
func (s *Store) finish(w *write, err error) {
	if err != nil && w.behind != "" {
		s.log.Error("not stored", "what", w.behind, "err", err)
	}
	w.ops = nil // the write may be kept, see entry
	w.done <- err
}

// transact commits a batch in one transaction of the state file.
func (s *Store) transact(batch []*write) error {
	err := s.db.Update(func(tx *bbolt.Tx) error { return apply(tx, batch) })
	if err != nil {
		return fmt.Errorf("%s: %w", s.db.Path(), err)
	}
	return nil
}

// fold puts what the journal holds into the state file, in order, one chunk
// after the other: in one transaction it would hold up, for tens of
// milliseconds, all that asks meanwhile. A journal is folded in some five chunks,
// of 10 ms of the processor each.
func (s *Store) fold(ops []op) *write {
	whole := &write{done: make(chan error, 1)}
	chunks := slices.Chunk(ops, max(1, int(s.journal.size/1024)))
	go func() {
		var err error
		for chunk := range chunks {
			w := &write{ops: chunk, done: make(chan error, 1)}
			s.table.queue <- w
			if err = w.wait(); err != nil {
				break
			}
		}
		whole.done <- err
	}()
	return whole
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

// slowCommit is when the log tells that the disk holds everybody up. It is far
// longer than any healthy disk takes, and shorter than the patience of firmware.
const slowCommit = 2 * time.Second

// line is a queue of writes, and the one goroutine that commits them.
type line struct {
	what   string // for the log
	queue  chan *write
	done   chan struct{} // closed when the goroutine has ended
	pace   time.Duration
	commit func(batch []*write) error
	finish func(w *write, err error)
	log    *slog.Logger
}

func (s *Store) newLine(what string, pace time.Duration, commit func([]*write) error) *line {
	return &line{what: what, queue: make(chan *write, maxBatch), done: make(chan struct{}), pace: pace, commit: commit, finish: s.finish, log: s.log}
}

// run commits the write that came first, and all that have gathered behind it,
// together, until there are no more to come.
func (l *line) run() {
	defer close(l.done)
	var last time.Time // when the commit before began
	for first := range l.queue {
		time.Sleep(time.Until(last.Add(l.pace)))
		last = time.Now()
		batch := l.gather(first)
		err := l.watched(batch)
		for _, w := range batch {
			l.finish(w, err)
		}
	}
}

// watched commits, and tells of a disk that takes its time while it does.
func (l *line) watched(batch []*write) error {
	began := time.Now()
	slow := time.AfterFunc(slowCommit, func() {
		l.log.Warn("the disk has not taken a write yet: leases and boots wait for it", "file", l.what, "writes", len(batch), "after", slowCommit)
	})
	err := l.commit(batch)
	if !slow.Stop() {
		l.log.Warn("the disk took a write at last", "file", l.what, "after", time.Since(began).Round(time.Millisecond), "err", err)
	}
	return err
}

// end commits what waits and ends run.
func (l *line) end() {
	close(l.queue)
	<-l.done
}

func (l *line) gather(first *write) []*write {
	batch := []*write{first}
	for len(batch) < maxBatch {
		select {
		case w, ok := <-l.queue:
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
