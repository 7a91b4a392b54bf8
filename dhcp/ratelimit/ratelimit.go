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
	round          int64    // of the newest packet: the milliseconds since start, by 2^roundBits
}

// roundBits is the length of a round: 2^30 ms are 12 days. Times are told apart as long as
// they are fewer than four rounds from each other.
const roundBits = 30

// New returns a limiter. Each sender may send burst packets at once, and then one in each
// interval.
func New(now time.Time, buckets, burst int, interval time.Duration) *Limiter {
	ms := uint32(interval / time.Millisecond)
	return &Limiter{start: now, interval: ms, full: ms * uint32(burst), due: make([]uint32, buckets)}
}

// Allow reports whether a packet of the sender with this hash may be answered.
func (l *Limiter) Allow(hash uint64, now time.Time) bool {
	ms := now.Sub(l.start).Milliseconds()
	at := uint32(ms)
	if round := ms >> roundBits; round != l.round {
		l.forget(at, round)
	}
	due := &l.due[hash%uint64(len(l.due))]
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

// forget begins a round: it moves the times that have passed to the present. Otherwise each
// would seem to lie ahead again after 2^32 ms, and a sender that was silent for so long, or
// never sent, would be refused.
func (l *Limiter) forget(at uint32, round int64) {
	all := round != l.round+1 && round != l.round-1 // no packet came for a round
	for i, due := range l.due {
		if all || due-at > l.full {
			l.due[i] = at
		}
	}
	l.round = round
}
