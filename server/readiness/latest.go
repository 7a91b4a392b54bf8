package readiness

import (
	"sync"
	"time"
)

const (
	// fresh is the age up to which a result needs no newer one: clients without the
	// token can ask in a loop.
	fresh = time.Second

	// newerWait is the time limit for a newer result than a recent one.
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

// get runs check, unless the last result is fresh. It returns the result if check ends in
// time: within wait, or within newerWait if the last result is recent. If not, get returns
// the last result; ok is false if there is none.
func (l *latest[T]) get(check func() T, wait time.Duration) (result T, ok bool) {
	running, age := l.start(check)
	if age < fresh {
		wait = 0
	} else if age < recent {
		wait = newerWait
	}
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

// start runs check in the background, unless it runs or the last result is fresh. It
// returns a channel that is closed when the check ends, and the age of the last result.
func (l *latest[T]) start(check func() T) (running chan struct{}, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	age = recent
	if !l.ended.IsZero() {
		age = time.Since(l.ended)
	}
	if l.running != nil || age < fresh {
		return l.running, age
	}
	running = make(chan struct{})
	l.running = running
	go func() {
		r := check()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.result, l.ended, l.running = r, time.Now(), nil
		close(running)
	}()
	return running, age
}
