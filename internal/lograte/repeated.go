package lograte

import (
	"sync"
	"time"
)

// repeatAfter is how long a problem that stays as it is is not logged again.
const repeatAfter = time.Hour

// Repeated tells which reports of a problem to log: those that differ from the one before, and
// one an hour of a problem that lasts. The zero value works, and several goroutines may use it.
type Repeated struct {
	mu   sync.Mutex
	last string
	at   time.Time
}

// Allow reports whether to log a problem. An empty text is its end: after it the same problem is new.
func (r *Repeated) Allow(problem string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if problem == r.last && now.Sub(r.at) < repeatAfter {
		return false
	}
	r.last, r.at = problem, now
	return problem != ""
}
