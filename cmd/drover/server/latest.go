package server

import (
	"sync"
	"time"
)

const (
	// newerWait is the time limit for a newer result than one of the last minute.
	newerWait = 200 * time.Millisecond
	recent    = time.Minute
)

// latest is the result of a check that can take long or hang. It runs at most one check
// at a time, however often it is asked.
type latest[T any] struct {
	mu      sync.Mutex
	running chan struct{} // closed when the check that runs ends; nil: none runs
	result  T
	ended   time.Time // of the check; zero: there is no result
}

// get runs check, and returns its result if it ends in time: within wait, or within
// newerWait if there is a recent result. If not, get returns the result of an earlier
// check; ok is false if there is none.
func (l *latest[T]) get(check func() T, wait time.Duration) (result T, ok bool) {
	l.mu.Lock()
	if !l.ended.IsZero() && time.Since(l.ended) < recent {
		wait = newerWait
	}
	running := l.running
	if running == nil {
		running = make(chan struct{})
		l.running = running
		go func() {
			r := check()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.result, l.ended, l.running = r, time.Now(), nil
			close(running)
		}()
	}
	l.mu.Unlock()
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-running:
	case <-limit.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.result, !l.ended.IsZero()
}
