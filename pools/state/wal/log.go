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

// maxQueue bounds the changes that wait for the disk, in bytes: some 50 000 leases.
const maxQueue = 4 << 20

// keepBuffer bounds the buffer of a batch that is kept for the next one, in bytes.
const keepBuffer = 1 << 20

// slowCommit is when it is logged that the disk makes everyone wait. It is far longer
// than any healthy disk takes, and shorter than the patience of firmware.
const slowCommit = 2 * time.Second

// retryPause is how long after a failure the next generation is tried again.
const retryPause = time.Second

// Log is a write-ahead log. The fields are set before Open.
type Log struct {
	Dir    string
	Tables map[TableID]Table
	Size   int64                // after so many bytes, at least, the next generation begins
	Logger *slog.Logger         // gets what no caller can be told
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
	stale    bool // the log has not all changes of RAM: a snapshot is needed
	pending  bool // the last attempt to write a snapshot failed
	missed   int  // asynchronous writes that found the queue full
	busy     bool // a snapshot is being written
	retry    time.Time
	limit    int64 // of the log's size

	running sync.WaitGroup // the committer and the snapshot
}

// Ticket is the number of the batch that changes were put into. The zero Ticket is
// durable.
type Ticket uint64

// batch is the changes that become durable by one write.
type batch struct {
	ticket        Ticket
	record        []byte
	writes, async int
}

// failure is a run of batches that were not stored, with the error of the last.
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
			l.finish(b, l.watched(b))
		}
	})
}

// Put queues changes that become durable together or not at all, in the order of the
// calls. It never waits. The error is [ErrBusy], [ErrClosed], or says which change is
// too large; then nothing is queued.
func (l *Log) Put(changes ...Change) (Ticket, error) { return l.enqueue(0, changes) }

// Async is Put for changes that no caller waits for. Those that cannot be stored are
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

// Wait returns nil once the changes of a ticket are durable, else the reason why they
// are not. It can be called more than once.
func (l *Log) Wait(t Ticket) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.done < t {
		l.finished.Wait()
	}
	return l.failure(t)
}

// Lost reports whether the changes of a ticket are known not to be stored.
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

// take waits for changes and takes all that are queued. It returns false when the log
// is closed and there are none.
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

// watched commits, and logs that the disk is slow while it is.
func (l *Log) watched(b batch) error {
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

// commit appends a batch to the log, durably. What a write that failed has left is
// overwritten by the next.
func (l *Log) commit(b batch) error {
	l.turn(int64(len(b.record)))
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

// firstRecord says where the log before ended, so that damage to its end is found.
func (s *segment) firstRecord() []byte {
	r := appendChange(newRecord(nil), Change{tableLog, []byte(keyEnd), binary.AppendUvarint(nil, uint64(s.before))})
	seal(r, s.generation, 0)
	return r
}

// turn begins the next generation when so many more bytes are too many for the log, or
// the log has missed something. When a generation got no snapshot, turn tries again.
func (l *Log) turn(more int64) {
	l.mu.Lock()
	due := l.pending || l.stale || l.current.end+more > l.limit
	if l.busy || l.closed || !due || time.Now().Before(l.retry) {
		l.mu.Unlock()
		return
	}
	follow := l.broken || !l.pending
	l.busy, l.stale = true, false
	l.mu.Unlock()
	if follow {
		if err := l.follow(); err != nil {
			l.turned(err)
			return
		}
	}
	generation := l.current.generation
	l.running.Go(func() { l.turned(l.snapshot(generation)) })
}

// follow goes on to the log of the next generation.
func (l *Log) follow() error {
	old := l.current
	next, err := l.createSegment(old.generation + 1)
	if err != nil {
		return err
	}
	next.before = old.end
	l.current, l.broken = next, false
	return old.file.Close()
}

// turned notes whether the generation has a snapshot.
func (l *Log) turned(err error) {
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

// finish wakes the callers that wait for a batch.
func (l *Log) finish(b batch, err error) {
	l.mu.Lock()
	missed := l.missed
	l.missed, l.done = 0, b.ticket
	if cap(b.record) <= keepBuffer {
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

// Close commits what is queued and closes the log. Writes after it get [ErrClosed].
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.work.Signal()
	l.mu.Unlock()
	l.running.Wait()
	return l.current.file.Close()
}
