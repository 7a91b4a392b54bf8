package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"drover/internal/lograte"
)

// maxQueue limits the changes that wait for the disk, in bytes: some 50 000 leases.
const maxQueue = 4 << 20

// maxSpare limits the buffer of a batch that is reused for a later one, in bytes.
const maxSpare = 1 << 20

// patience is the default of Log.Patience. It is far longer than a write to a busy disk.
const patience = 10 * time.Second

// openWait is the time for which Open waits for the disk.
const openWait = slowWrite + time.Second

// Log is a write-ahead log. The fields are set before Open.
type Log struct {
	Dir    string
	Tables map[TableID]Table
	Size   int64                // the least size of a log, in bytes, at which the next generation begins
	Logger *slog.Logger         // gets errors that no caller can get
	Sync   func(*os.File) error // makes data durable; nil: as fdatasync(2) does

	// Patience is the time after which a write that the disk has not taken is given
	// up: its callers get [ErrHangs], and further writes too until the disk takes it.
	// Default 10 s.
	Patience time.Duration

	// AcceptLoss leaves out damaged values of vital tables as well. Files and values
	// that are left out are logged.
	AcceptLoss bool

	// The committer alone uses these.
	current segment // without a file, the first generation has not begun
	broken  bool    // the last write failed
	spare   []byte  // buffer for a batch
	lines   lograte.Limiter

	keepDamaged bool // until the first generation has begun

	mu       sync.Mutex
	work     sync.Cond // there is work for the committer
	finished sync.Cond // a batch is finished, or the log is
	queue    batch
	done     Ticket    // all batches up to this one are finished
	failed   []failure // of them, by ticket
	closed   bool
	ended    bool // the committer has ended
	stale    bool // the log lacks changes of RAM: a snapshot is needed
	pending  bool // the last attempt to write a snapshot failed
	missed   int  // asynchronous writes that were refused
	busy     bool // a snapshot is being written
	retry    time.Time
	limit    int64 // of the log's size
	wake     bool  // the committer should try what is due
	waking   bool  // a timer will set wake
	damage   Damage
	health   health

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
	vital         bool // changes a table with Table.Vital
}

// failure is a range of consecutive batches that were not stored, with the error of the
// last.
type failure struct {
	first, last Ticket
	err         error
}

// Open reads the disk into the tables, and starts to accept changes. If the disk takes
// no writes, Open succeeds all the same when it could read an earlier state: changes
// are refused, and Health reports the reason, until the disk takes writes again.
func (l *Log) Open() error {
	c, last, err := l.replay()
	if err == nil {
		err = l.load(c)
	}
	if err != nil {
		return err
	}
	return l.start(last)
}

// load fills the tables.
func (l *Log) load(c contents) error {
	for _, id := range slices.Sorted(maps.Keys(c)) {
		t, ok := l.Tables[id]
		if !ok {
			return fmt.Errorf("unknown table %d", id)
		}
		values := c[id]
		for _, key := range slices.Sorted(maps.Keys(values)) {
			err := t.Load([]byte(key), values[key])
			switch {
			case err == nil:
			case t.Vital != "" && !l.AcceptLoss:
				return fmt.Errorf("%w: %w", err, ErrDamaged)
			default:
				_ = l.lose(false, 0, "%v", err)
			}
		}
	}
	if d := l.Damage(); d.Parts > 0 {
		l.keepDamaged = true
		l.Logger.Error("the state is damaged; the rest is in use", "parts", d.Parts, "bytes", d.Bytes, "kept", "*.damaged")
	}
	return nil
}

// order returns the numbers of the tables, the vital ones first.
func (l *Log) order() []TableID {
	vital := func(id TableID) int {
		if l.Tables[id].Vital != "" {
			return 0
		}
		return 1
	}
	all := slices.Sorted(maps.Keys(l.Tables))
	slices.SortStableFunc(all, func(a, b TableID) int { return vital(a) - vital(b) })
	return all
}

// start starts the committer, and waits until the generation after the last one has
// begun, or cannot begin now. If there is no last one that is an error.
func (l *Log) start(last segment) error {
	must := last.generation == 0
	if l.Patience <= 0 {
		l.Patience = patience
	}
	last.file, last.durable = nil, last.end
	l.current, l.limit, l.stale = last, l.Size, true
	l.work.L, l.finished.L = &l.mu, &l.mu
	l.queue = batch{ticket: 1, record: newRecord(nil)}
	l.lines.Log = l.Logger
	began := make(chan struct{})
	l.running.Go(func() {
		if l.Sync == nil {
			var d datasync
			d.open()
			defer d.close()
			l.Sync = d.sync
		}
		_ = l.watched(0, func() error { l.rotate(0); return nil })
		close(began)
		l.commitAll()
	})
	if must {
		<-began
	} else {
		select {
		case <-began:
		case <-time.After(openWait):
		}
	}
	if err := l.Health(); must && err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// Put queues changes, in the order of the calls. The changes of one call become durable
// together or not at all. Put never waits. The error is [ErrBusy], [ErrHangs],
// [ErrClosed], or that of a change that is too large; then nothing is queued.
func (l *Log) Put(changes ...Change) (Ticket, error) { return l.enqueue(0, changes) }

// Async is Put for changes that no caller waits for. A change that cannot be stored is
// logged, and stored by the next snapshot.
func (l *Log) Async(changes ...Change) {
	if _, err := l.enqueue(1, changes); err != nil {
		l.mu.Lock()
		l.missed++
		l.mu.Unlock()
		l.Rewrite()
	}
}

// Rewrite begins the next generation soon, since values have changed in RAM alone.
func (l *Log) Rewrite() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
	l.wakeSoon()
}

func (l *Log) enqueue(async int, changes []Change) (Ticket, error) {
	vital := false
	for _, c := range changes {
		if err := c.check(); err != nil {
			return 0, err
		}
		vital = vital || l.Tables[c.Table].Vital != ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return 0, ErrClosed
	case l.health.hangs:
		return 0, ErrHangs
	case len(l.queue.record) >= maxQueue:
		return 0, ErrBusy
	}
	for _, c := range changes {
		l.queue.record = appendChange(l.queue.record, c)
	}
	l.queue.writes++
	l.queue.async += async
	l.queue.vital = l.queue.vital || vital
	l.work.Signal()
	return l.queue.ticket, nil
}

// Wait returns nil once the changes of a ticket are durable, or the error of their write.
// After [ErrHangs] they can become durable later. It can be called more than once.
func (l *Log) Wait(t Ticket) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.done < t && !l.health.hangs {
		l.finished.Wait()
	}
	if l.done < t {
		return ErrHangs
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

// Close commits the queued changes and closes the log. Later writes return [ErrClosed].
// If the disk hangs, Close returns [ErrHangs] without waiting for it.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.work.Signal()
	for !l.ended && !l.health.hangs {
		l.finished.Wait()
	}
	ended := l.ended
	l.mu.Unlock()
	if !ended {
		return ErrHangs
	}
	l.running.Wait()
	if l.current.file == nil {
		return nil
	}
	return l.current.file.Close()
}
