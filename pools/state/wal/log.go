package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// maxQueue limits the changes that wait for the disk, in bytes: some 50 000 leases.
const maxQueue = 4 << 20

// maxSpare limits the buffer of a batch that is reused for a later one, in bytes.
const maxSpare = 1 << 20

// slowCommit is the time after which a slow write is logged. It is far longer than a
// write to a healthy disk, and shorter than the timeouts of firmware.
const slowCommit = 2 * time.Second

// retryPause is the delay after a generation that failed to begin.
const retryPause = time.Second

// Log is a write-ahead log. The fields are set before Open.
type Log struct {
	Dir    string
	Tables map[TableID]Table
	Size   int64                // the least size of a log, in bytes, at which the next generation begins
	Logger *slog.Logger         // gets errors that no caller can get
	Sync   func(*os.File) error // makes data durable; nil: as fdatasync(2) does

	// The committer alone uses these.
	current segment
	broken  bool   // the last write failed
	spare   []byte // buffer for a batch

	mu       sync.Mutex
	work     sync.Cond // there is work for the committer
	finished sync.Cond // a batch is finished
	queue    batch
	done     Ticket    // all batches up to this one are finished
	failed   []failure // of them, by ticket
	closed   bool
	stale    bool // the log lacks changes of RAM: a snapshot is needed
	pending  bool // the last attempt to write a snapshot failed
	missed   int  // asynchronous writes that found the queue full
	busy     bool // a snapshot is being written
	retry    time.Time
	limit    int64 // of the log's size

	running sync.WaitGroup // the committer and the snapshot
}

// Ticket is the number of the batch that contains a change. The batch of the zero Ticket
// is always durable.
type Ticket uint64

// batch is a set of changes that become durable by one write.
type batch struct {
	ticket        Ticket
	record        []byte
	writes, async int
}

// failure is a range of consecutive batches that were not stored, with the error of the
// last.
type failure struct {
	first, last Ticket
	err         error
}

// start starts the committer.
func (l *Log) start(current segment) {
	l.current, l.limit = current, l.Size
	l.work.L, l.finished.L = &l.mu, &l.mu
	l.queue = batch{ticket: 1, record: newRecord(nil)}
	l.running.Go(func() {
		if l.Sync == nil {
			var d datasync
			d.open()
			defer d.close()
			l.Sync = d.sync
		}
		for b, ok := l.take(); ok; b, ok = l.take() {
			l.finish(b, l.commitLogged(b))
		}
	})
}

// Put queues changes, in the order of the calls. The changes of one call become durable
// together or not at all. Put never waits. The error is [ErrBusy], [ErrClosed], or that
// of a change that is too large; then nothing is queued.
func (l *Log) Put(changes ...Change) (Ticket, error) { return l.enqueue(0, changes) }

// Async is Put for changes that no caller waits for. A change that cannot be stored is
// logged, and stored by the next snapshot.
func (l *Log) Async(changes ...Change) {
	if _, err := l.enqueue(1, changes); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.missed++
		l.stale = true
	}
}

func (l *Log) enqueue(async int, changes []Change) (Ticket, error) {
	for _, c := range changes {
		if err := c.check(); err != nil {
			return 0, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return 0, ErrClosed
	case len(l.queue.record) >= maxQueue:
		return 0, ErrBusy
	}
	for _, c := range changes {
		l.queue.record = appendChange(l.queue.record, c)
	}
	l.queue.writes++
	l.queue.async += async
	l.work.Signal()
	return l.queue.ticket, nil
}

// Wait returns nil once the changes of a ticket are durable, or the error of their write.
// It can be called more than once.
func (l *Log) Wait(t Ticket) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.done < t {
		l.finished.Wait()
	}
	return l.failure(t)
}

// Lost reports whether the write of a ticket has failed.
func (l *Log) Lost(t Ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure(t) != nil
}

func (l *Log) failure(t Ticket) error {
	for _, f := range l.failed {
		if f.first <= t && t <= f.last {
			return f.err
		}
	}
	return nil
}

// take waits for changes and returns the queued batch. It returns false if the log is
// closed and no changes are queued.
func (l *Log) take() (b batch, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.writes == 0 && !l.closed {
		l.work.Wait()
	}
	b = l.queue
	l.queue = batch{ticket: b.ticket + 1, record: newRecord(l.spare)}
	l.spare = nil
	return b, b.writes > 0
}

// commitLogged is commit that logs a slow disk.
func (l *Log) commitLogged(b batch) error {
	began, name := time.Now(), l.current.name
	slow := time.AfterFunc(slowCommit, func() {
		l.Logger.Warn("the disk has not taken a write yet: leases and boots wait for it", "file", name, "writes", b.writes, "after", slowCommit)
	})
	err := l.commit(b)
	if !slow.Stop() {
		l.Logger.Warn("the disk took a write at last", "file", name, "after", time.Since(began).Round(time.Millisecond), "err", err)
	}
	return err
}

// commit appends a batch to the log, durably. The next write overwrites the remains of a
// failed one.
func (l *Log) commit(b batch) error {
	l.rotate(int64(len(b.record)))
	s := &l.current
	record := b.record
	if s.end == 0 {
		first := s.firstRecord()
		seal(record, s.generation, int64(len(first)))
		record = append(first, record...)
	} else {
		seal(record, s.generation, s.end)
	}
	err := s.grow(s.end + int64(len(record)))
	if err == nil {
		_, err = s.file.WriteAt(record, s.end)
	}
	if err == nil {
		err = l.Sync(s.file)
	}
	if l.broken = err != nil; err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.end += int64(len(record))
	return nil
}

// firstRecord returns the first record of a log. It has the end of the previous log, so
// that damage to that end is found.
func (s *segment) firstRecord() []byte {
	r := appendChange(newRecord(nil), Change{tableLog, []byte(keyEnd), binary.AppendUvarint(nil, uint64(s.before))})
	seal(r, s.generation, 0)
	return r
}

// rotate begins the next generation if more bytes would exceed the limit of the log, or if
// the log lacks changes. If the current generation has no snapshot, rotate tries again to
// write it.
func (l *Log) rotate(more int64) {
	l.mu.Lock()
	due := l.pending || l.stale || l.current.end+more > l.limit
	if l.busy || l.closed || !due || time.Now().Before(l.retry) {
		l.mu.Unlock()
		return
	}
	newLog := l.broken || !l.pending
	l.busy, l.stale = true, false
	l.mu.Unlock()
	if newLog {
		if err := l.nextLog(); err != nil {
			l.rotated(err)
			return
		}
	}
	generation := l.current.generation
	l.running.Go(func() { l.rotated(l.snapshot(generation)) })
}

// nextLog begins the log of the next generation.
func (l *Log) nextLog() error {
	old := l.current
	next, err := l.createSegment(old.generation + 1)
	if err != nil {
		return err
	}
	next.before = old.end
	l.current, l.broken = next, false
	return old.file.Close()
}

// rotated records the result of a rotation.
func (l *Log) rotated(err error) {
	l.mu.Lock()
	l.busy, l.pending = false, err != nil
	if err != nil {
		l.retry = time.Now().Add(retryPause)
	}
	l.mu.Unlock()
	if err != nil && !errors.Is(err, ErrClosed) {
		l.Logger.Error("no new snapshot of the state, trying again", "err", err)
	}
}

// finish records the result of a batch, and wakes the callers that wait for it.
func (l *Log) finish(b batch, err error) {
	l.mu.Lock()
	missed := l.missed
	l.missed, l.done = 0, b.ticket
	if cap(b.record) <= maxSpare {
		l.spare = b.record
	}
	if err != nil {
		l.stale = true
		if n := len(l.failed) - 1; n >= 0 && l.failed[n].last == b.ticket-1 {
			l.failed[n].last, l.failed[n].err = b.ticket, err
		} else {
			l.failed = append(l.failed, failure{b.ticket, b.ticket, err})
		}
	}
	l.finished.Broadcast()
	l.mu.Unlock()
	if err != nil && b.async > 0 {
		l.Logger.Error("not stored", "writes", b.async, "err", err)
	}
	if missed > 0 {
		l.Logger.Error("not stored", "writes", missed, "err", ErrBusy)
	}
}

// Close commits the queued changes and closes the log. Later writes return [ErrClosed].
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.work.Signal()
	l.mu.Unlock()
	l.running.Wait()
	return l.current.file.Close()
}
