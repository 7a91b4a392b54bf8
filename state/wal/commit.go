package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// retryPause is the delay after a generation that failed to begin, or a write that
// failed.
const retryPause = time.Second

// commitAll commits batches until the log is closed and none is queued.
func (l *Log) commitAll() {
	for b, ok := l.take(); ok; b, ok = l.take() {
		if b.writes == 0 {
			_ = l.watched(0, func() error { l.rotate(0); return nil })
			continue
		}
		l.finish(b, l.watched(b.writes, func() error { return l.commit(b) }))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.finished.Broadcast()
}

// take waits for changes and returns the queued batch. The batch is empty if the
// committer should only try what is due. take returns false if the log is closed and no
// changes are queued.
func (l *Log) take() (b batch, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.writes == 0 && !l.closed && !l.wake {
		l.work.Wait()
	}
	l.wake = false
	if l.queue.writes == 0 {
		return batch{}, !l.closed
	}
	b = l.queue
	l.queue = batch{ticket: b.ticket + 1, record: newRecord(l.spare)}
	l.spare = nil
	return b, true
}

// wakeSoon wakes the committer after retryPause. It requires that the lock is held.
func (l *Log) wakeSoon() {
	if l.waking || l.closed {
		return
	}
	l.waking = true
	time.AfterFunc(retryPause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waking, l.wake = false, true
		l.work.Signal()
	})
}

// commit appends a batch to the log, durably. The next write overwrites the remains of a
// failed one.
func (l *Log) commit(b batch) error {
	l.rotate(int64(len(b.record)))
	s := &l.current
	if s.file == nil {
		if err := l.Health(); err != nil {
			return err
		}
		return ErrClosed
	}
	vital, record := s.vital, b.record
	if b.vital {
		vital++
	}
	if vital > 0 {
		record = appendChange(record, logChange(keyVital, vital))
	}
	if l.broken = true; s.end == 0 {
		first := s.firstRecord()
		seal(record, s.generation, int64(len(first)))
		record = append(first, record...)
	} else {
		seal(record, s.generation, s.end)
	}
	err := s.append(record)
	if err == nil {
		err = l.Sync(s.file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	l.broken = false
	s.end += int64(len(record))
	s.durable = s.end
	if s.vital = vital; b.vital {
		s.countVital()
	}
	return nil
}

// append writes a record at the end of the log. The caller moves the end.
func (s *segment) append(record []byte) error {
	if err := s.grow(s.end + int64(len(record))); err != nil {
		return err
	}
	_, err := s.file.WriteAt(record, s.end)
	return err
}

// countVital appends a record with the number of vital records, so that damage to the
// last one is found. It follows a durable record, and needs not be durable itself: the next
// log says that this one ends before it.
func (s *segment) countVital() {
	r := appendChange(newRecord(nil), logChange(keyVital, s.vital))
	seal(r, s.generation, s.end)
	if s.append(r) == nil {
		s.end += int64(len(r))
	}
}

// firstRecord returns the first record of a log. It describes the durable end of the
// previous log, so that damage to that end is found, and a power failure is no damage.
func (s *segment) firstRecord() []byte {
	r := appendChange(newRecord(nil), logChange(keyEnd, uint64(s.before)))
	if s.vitalBefore > 0 {
		r = appendChange(r, logChange(keyVitalBefore, s.vitalBefore))
	}
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
		if due {
			l.wakeSoon()
		}
		l.mu.Unlock()
		return
	}
	newLog := l.broken || !l.pending
	l.busy, l.stale = true, false
	l.mu.Unlock()
	if l.current.file == nil {
		l.rotated(l.firstGeneration())
		return
	}
	if newLog {
		if err := l.nextLog(); err != nil {
			l.rotated(err)
			return
		}
	}
	generation := l.current.generation
	l.running.Go(func() {
		err := l.snapshot(generation, l.barrier)
		if err == nil {
			err = l.removeBefore(generation)
		}
		l.rotated(err)
	})
}

// firstGeneration begins the generation after the one that Open has read. Changes are refused
// until it has a snapshot.
func (l *Log) firstGeneration() error {
	s, err := l.createSegment(l.current)
	if err != nil {
		return err
	}
	err = l.snapshot(s.generation, func() error { return nil })
	if err != nil {
		return errors.Join(err, s.file.Close())
	}
	l.current = s
	err = l.removeBefore(s.generation)
	l.keepDamaged = false
	return err
}

// nextLog begins the log of the next generation.
func (l *Log) nextLog() error {
	old := l.current
	next, err := l.createSegment(old)
	if err != nil {
		return err
	}
	l.current, l.broken = next, false
	return old.file.Close()
}

// rotated records the result of a rotation.
func (l *Log) rotated(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy, l.pending = false, err != nil
	l.health.snapshot(err)
	if l.stale {
		l.wakeSoon()
	}
	if err == nil {
		return
	}
	l.retry = time.Now().Add(retryPause)
	l.wakeSoon()
	if n := l.health.attempts; !errors.Is(err, ErrClosed) && (n <= 3 || n%60 == 0) {
		l.Logger.Error("state snapshot failed, trying again", "err", err)
	}
}

// finish records the result of a batch, and wakes the callers that wait for it.
func (l *Log) finish(b batch, err error) {
	l.mu.Lock()
	missed := l.missed
	l.missed, l.done = 0, b.ticket
	l.health.write(err)
	if cap(b.record) <= maxSpare {
		l.spare = b.record
	}
	if err != nil {
		l.stale = true
		l.wakeSoon()
		if n := len(l.failed) - 1; n >= 0 && l.failed[n].last == b.ticket-1 {
			l.failed[n].last, l.failed[n].err = b.ticket, err
		} else {
			l.failed = append(l.failed, failure{b.ticket, b.ticket, err})
		}
	}
	l.finished.Broadcast()
	l.mu.Unlock()
	if err != nil && b.async > 0 && l.lines.Allow(slog.LevelError, "state write failed") {
		l.Logger.Error("state write failed", "writes", b.async, "err", err)
	}
	if missed > 0 && l.lines.Allow(slog.LevelError, "state write failed") {
		l.Logger.Error("state write failed", "writes", missed, "err", ErrBusy)
	}
}
