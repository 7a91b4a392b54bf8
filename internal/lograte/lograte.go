// Package lograte bounds the log lines that other hosts cause. [Limiter] lets a few
// lines of each kind through in a second, and logs how many it left out.
//
//	lines := &lograte.Limiter{Log: log}
//	if lines.Allow(slog.LevelWarn, "no address") {
//		log.Warn("no address is free", "mac", mac)
//	}
//
// The package does not know what the lines say.
package lograte

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	perSecond = 5  // default of Limiter.PerSecond
	burst     = 20 // the least number of lines at once

	// totalsEvery is the interval of the lines with the numbers of those left out.
	totalsEvery = 10 * time.Second

	// maxKinds bounds the kinds that are limited separately. The kinds after them
	// share one limit.
	maxKinds   = 64
	otherKinds = "other"
)

// Limiter limits the lines of a log, separately for each kind. The zero value works. It
// may be used by several goroutines, and must not be copied.
type Limiter struct {
	Log       *slog.Logger // gets the numbers of lines left out; nil: none
	PerSecond int          // lines of one kind in a second, default 5; 20 or a second's may come at once

	mu      sync.Mutex
	kinds   map[string]*kind
	pending bool // a call of totals is due
}

// kind is the state of one kind of lines.
type kind struct {
	limit *rate.Limiter
	left  int        // lines left out since the last totals
	level slog.Level // of the last one of them
}

// Allow reports whether to log a line of a kind at a level. It counts a line that it
// refuses, unless the log leaves out that level anyway. The kind is a word for the
// line's event, which no client can choose.
func (l *Limiter) Allow(level slog.Level, name string) bool {
	if l.Log != nil && !l.Log.Enabled(context.Background(), level) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kind(name)
	if k.limit.Allow() {
		return true
	}
	k.left++
	k.level = level
	if !l.pending {
		l.pending = true
		time.AfterFunc(totalsEvery, l.totals)
	}
	return false
}

// kind returns the state of a kind. The caller holds the lock.
func (l *Limiter) kind(name string) *kind {
	k := l.kinds[name]
	if k == nil && len(l.kinds) >= maxKinds {
		name = otherKinds
		k = l.kinds[name]
	}
	if k == nil {
		n := l.PerSecond
		if n <= 0 {
			n = perSecond
		}
		k = &kind{limit: rate.NewLimiter(rate.Limit(n), max(n, burst))}
		if l.kinds == nil {
			l.kinds = make(map[string]*kind)
		}
		l.kinds[name] = k
	}
	return k
}

// totals logs the numbers of lines left out since the last call.
func (l *Limiter) totals() {
	left := make(map[string]kind)
	l.mu.Lock()
	l.pending = false
	for name, k := range l.kinds {
		if k.left > 0 {
			left[name] = *k
			k.left = 0
		}
	}
	l.mu.Unlock()
	if l.Log == nil {
		return
	}
	for name, k := range left {
		l.Log.Log(context.Background(), k.level, "lines of one kind were left out", "kind", name, "lines", k.left, "within", totalsEvery)
	}
}
