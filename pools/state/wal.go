package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// maxQueue bounds the changes that wait for the disk, in bytes: some 50 000 leases.
const maxQueue = 4 << 20

// keepBuffer bounds the buffer of a batch that is kept for the next one, in bytes.
const keepBuffer = 1 << 20

// slowCommit is when the log reports that the disk makes everyone wait. It is far
// longer than any healthy disk takes, and shorter than the patience of firmware.
const slowCommit = 2 * time.Second

// retryPause is how long after a failure the next log or snapshot is tried again.
const retryPause = time.Second

// wal is the engine: a write-ahead log with snapshots.
//
// One goroutine, the committer, takes all changes that are queued, appends them to
// the log as one record, makes that durable, and takes what has been queued since.
// The file of the log consists of zeros before it is used: fdatasync then has data
// to write but no metadata.
//
// A log that is full, or whose last write failed, is followed by the next
// generation's: appends go there at once, and a goroutine writes a snapshot of the
// tables beside it (snapshot.go). Until that is complete, the snapshot and the logs
// before it stay.
type wal struct {
	dir    string
	log    *slog.Logger
	tables map[tableID]table
	limit  int64                                       // least size of a log, in bytes
	create func(path string, size int64) (file, error) // a file of zeros

	// The committer alone uses these.
	current segment
	spare   []byte // buffer for a batch

	mu       sync.Mutex
	work     sync.Cond // there is work for the committer
	finished sync.Cond // a batch is finished
	queue    batch
	done     ticket    // all batches up to this one are finished
	failed   []failure // of them, by ticket
	closed   bool
	stale    bool      // the log has not all changes of RAM: a snapshot is needed
	missed   int       // asynchronous writes that found the queue full
	next     *segment  // the log of the next generation, ready for use
	busy     bool      // a goroutine prepares it, or writes a snapshot
	retry    time.Time // no new attempt before
	size     int64     // of the next log

	running sync.WaitGroup // the committer and that goroutine
}

// segment is the log of one generation.
type segment struct {
	file       file
	name       string
	generation uint64
	size       int64 // that consists of zeros from the start
	end        int64 // of its records
	before     int64 // end of the records in the log of the generation before
}

// batch is the changes that become durable by one write.
type batch struct {
	ticket        ticket
	record        []byte
	writes, async int
}

// failure is a run of batches that were not stored, with the error of the last.
type failure struct {
	first, last ticket
	err         error
}

// file is what the committer needs of a file.
type file interface {
	WriteAt(b []byte, off int64) (int, error)
	Datasync() error // makes the data durable, without the time of the change
	Close() error
}

// start starts the committer.
func (w *wal) start(current segment) {
	w.current, w.size = current, w.limit
	w.work.L, w.finished.L = &w.mu, &w.mu
	w.queue = batch{ticket: 1, record: newRecord(nil)}
	w.running.Go(w.commitAll)
}

func (w *wal) put(changes ...change) (ticket, error) { return w.enqueue(0, changes) }

func (w *wal) async(changes ...change) {
	if _, err := w.enqueue(1, changes); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.missed++
		w.stale = true
	}
}

func (w *wal) enqueue(async int, changes []change) (ticket, error) {
	for _, c := range changes {
		if err := c.check(); err != nil {
			return 0, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return 0, ErrClosed
	case len(w.queue.record) >= maxQueue:
		return 0, ErrBusy
	}
	for _, c := range changes {
		w.queue.record = appendChange(w.queue.record, c)
	}
	w.queue.writes++
	w.queue.async += async
	w.work.Signal()
	return w.queue.ticket, nil
}

func (w *wal) wait(t ticket) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.done < t {
		w.finished.Wait()
	}
	return w.failure(t)
}

func (w *wal) lost(t ticket) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure(t) != nil
}

func (w *wal) failure(t ticket) error {
	for _, f := range w.failed {
		if f.first <= t && t <= f.last {
			return f.err
		}
	}
	return nil
}

// commitAll commits batch after batch until the log is closed and nothing waits.
func (w *wal) commitAll() {
	for {
		b, ok := w.take()
		if !ok {
			return
		}
		w.finish(b, w.watched(b))
	}
}

// take waits for changes and takes all that are queued.
func (w *wal) take() (b batch, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.queue.writes == 0 && !w.closed {
		w.work.Wait()
	}
	b = w.queue
	w.queue = batch{ticket: b.ticket + 1, record: newRecord(w.spare)}
	w.spare = nil
	return b, b.writes > 0
}

// watched commits, and logs that the disk is slow while it is.
func (w *wal) watched(b batch) error {
	began, name := time.Now(), w.current.name
	slow := time.AfterFunc(slowCommit, func() {
		w.log.Warn("the disk has not taken a write yet: leases and boots wait for it", "file", name, "writes", b.writes, "after", slowCommit)
	})
	err := w.commit(b)
	if !slow.Stop() {
		w.log.Warn("the disk took a write at last", "file", name, "after", time.Since(began).Round(time.Millisecond), "err", err)
	}
	return err
}

// commit appends a batch to the log, durably. What a write that failed has left is
// overwritten by the next.
func (w *wal) commit(b batch) error {
	w.turn(int64(len(b.record)))
	s := &w.current
	record := b.record
	if s.end == 0 {
		first := s.firstRecord()
		seal(record, s.generation, int64(len(first)))
		record = append(first, record...)
	} else {
		seal(record, s.generation, s.end)
	}
	_, err := s.file.WriteAt(record, s.end)
	if err == nil {
		err = s.file.Datasync()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.end += int64(len(record))
	return nil
}

// firstRecord says where the log before ended, so that damage to its end is found.
func (s *segment) firstRecord() []byte {
	r := appendChange(newRecord(nil), change{tableLog, []byte(keyEnd), binary.AppendUvarint(nil, uint64(s.before))})
	seal(r, s.generation, 0)
	return r
}

// turn goes on to the next generation when the log has no room for so many bytes, or
// has missed something. While the next log is not ready, it stays with the old one,
// beyond its size.
func (w *wal) turn(more int64) {
	old := w.current
	w.mu.Lock()
	full, half := old.end+more > old.size, old.end+more > old.size/2
	switch {
	case w.busy:
	case w.next == nil && (w.stale || half):
		w.background(old.generation+1, w.prepare)
	case w.next != nil && (w.stale || full):
		w.current, w.next, w.stale = *w.next, nil, false
		w.current.before = old.end
		w.background(w.current.generation, w.snapshot)
	}
	w.mu.Unlock()
	if w.current.generation == old.generation {
		return
	}
	if err := old.file.Close(); err != nil {
		w.log.Error("log of the state not closed", "file", old.name, "err", err)
	}
}

// background runs a step towards the next generation, unless the one before has
// just failed. It expects the lock to be held.
func (w *wal) background(generation uint64, step func(generation uint64) error) {
	if w.closed || time.Now().Before(w.retry) {
		return
	}
	w.busy = true
	w.running.Go(func() {
		err := step(generation)
		w.mu.Lock()
		w.busy = false
		if err != nil {
			w.stale, w.retry = true, time.Now().Add(retryPause)
		}
		w.mu.Unlock()
		if err != nil && !errors.Is(err, ErrClosed) {
			w.log.Error("state not compacted, trying again", "err", err)
		}
	})
}

// prepare makes the log of the next generation.
func (w *wal) prepare(generation uint64) error {
	w.mu.Lock()
	size := w.size
	w.mu.Unlock()
	s, err := w.createSegment(generation, size)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = &s
	return nil
}

// finish wakes those who wait for a batch.
func (w *wal) finish(b batch, err error) {
	w.mu.Lock()
	missed := w.missed
	w.missed, w.done = 0, b.ticket
	if cap(b.record) <= keepBuffer {
		w.spare = b.record
	}
	if err != nil {
		w.stale = true
		if n := len(w.failed) - 1; n >= 0 && w.failed[n].last == b.ticket-1 {
			w.failed[n].last, w.failed[n].err = b.ticket, err
		} else {
			w.failed = append(w.failed, failure{b.ticket, b.ticket, err})
		}
	}
	w.finished.Broadcast()
	w.mu.Unlock()
	if err != nil && b.async > 0 {
		w.log.Error("not stored", "writes", b.async, "err", err)
	}
	if missed > 0 {
		w.log.Error("not stored", "writes", missed, "err", ErrBusy)
	}
}

// close commits what is queued and ends everything.
func (w *wal) close() error {
	w.mu.Lock()
	w.closed = true
	w.work.Signal()
	w.mu.Unlock()
	w.running.Wait()
	err := w.current.file.Close()
	if w.next != nil {
		err = errors.Join(err, w.next.file.Close())
	}
	return err
}
