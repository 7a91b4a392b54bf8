// Package ratelimit limits how often each of very many senders is answered, in constant
// memory. The DHCP servers of both families use it.
package ratelimit

import "time"

// Limiter keeps, for each bucket of senders, the time at which all packets so far
// would have been sent at the allowed pace. The buckets are so many that senders
// rarely share one, a random seed makes the sharing unpredictable, and they are few
// enough for the processor's cache. Nothing is allocated or cleaned up. One goroutine uses
// it at a time.
type Limiter struct {
	start          time.Time
	interval, full uint32   // milliseconds
	due            []uint32 // milliseconds since start, modulo 2^32
}

// New returns a limiter. Each sender may send burst packets at once, and then one in each
// interval.
func New(now time.Time, buckets, burst int, interval time.Duration) *Limiter {
	ms := uint32(interval / time.Millisecond)
	return &Limiter{start: now, interval: ms, full: ms * uint32(burst), due: make([]uint32, buckets)}
}

// Allow reports whether a packet of the sender with this hash may be answered.
func (l *Limiter) Allow(hash uint64, now time.Time) bool {
	due := &l.due[hash%uint64(len(l.due))]
	at := uint32(now.Sub(l.start).Milliseconds())
	ahead := *due - at
	if ahead > l.full { // due has passed; it is never further ahead than that
		ahead = 0
	}
	if ahead+l.interval > l.full {
		return false
	}
	*due = at + ahead + l.interval
	return true
}
