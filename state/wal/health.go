package wal

import (
	"fmt"
	"time"
)

// slowWrite is the time after which a slow write is logged, and reported by Health. It is
// far longer than a write to a healthy disk, and shorter than the timeouts of firmware.
const slowWrite = 2 * time.Second

// health is the condition of the disk.
type health struct {
	writeErr    error     // of the last write
	snapshotErr error     // of the last snapshot
	attempts    int       // snapshots that failed since the last one that did not
	attempt     int       // number of the write under way
	slowSince   time.Time // when that began, if it is slow
	hangs       bool      // and was given up
}

func (h *health) write(err error) { h.writeErr = err }

func (h *health) snapshot(err error) {
	if h.snapshotErr = err; err != nil {
		h.attempts++
		return
	}
	h.attempts, h.writeErr = 0, nil
}

// Health returns the reason for which the disk does not have all changes, or nil.
func (l *Log) Health() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch h := &l.health; {
	case !h.slowSince.IsZero():
		return fmt.Errorf("the disk has taken no write since %s: %s", h.slowSince.Format(time.TimeOnly), l.Dir)
	case h.writeErr != nil:
		return h.writeErr
	default:
		return h.snapshotErr
	}
}

// watched calls write. It logs a slow write, and gives it up after Patience: then the
// callers that wait for it, or for those behind it, get [ErrHangs].
func (l *Log) watched(writes int, write func() error) error {
	began := time.Now()
	l.mu.Lock()
	l.health.attempt++
	n := l.health.attempt
	l.mu.Unlock()
	slow := time.AfterFunc(slowWrite, func() { l.slow(n, began, writes) })
	err := write()
	quick := slow.Stop()
	l.mu.Lock()
	l.health.attempt++
	l.health.slowSince, l.health.hangs = time.Time{}, false
	l.mu.Unlock()
	if !quick {
		l.Logger.Warn("disk writes work again", "dir", l.Dir, "after", time.Since(began).Round(time.Millisecond), "err", err)
	}
	return err
}

// slow reports a write that takes long, unless it has ended.
func (l *Log) slow(n int, began time.Time, writes int) {
	l.mu.Lock()
	slow := l.health.attempt == n
	if slow {
		l.health.slowSince = began
	}
	l.mu.Unlock()
	if !slow {
		return
	}
	l.Logger.Warn("disk write takes long: leases and boots wait for it", "dir", l.Dir, "writes", writes, "after", slowWrite)
	time.AfterFunc(l.Patience-slowWrite, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.health.attempt == n {
			l.health.hangs = true
			l.finished.Broadcast()
		}
	})
}
