package dhcpd

import (
	"hash/maphash"
	"time"

	"drover/pools"
)

// The limits of one client: so many packets at once, and then one in each
// interval. A boot is some four exchanges of two packets within seconds
// (firmware, iPXE, initrd, operating system), and clients that get no answer
// ask again after 4 s (RFC 2131, section 4.1): both stay far below.
const (
	clientBurst    = 20
	clientInterval = 200 * time.Millisecond
)

// limiter keeps a client that asks without pause from taking the time of the
// others. For each bucket of MACs it keeps the time at which all packets so far
// would have been sent at the allowed pace. The buckets are so many that clients
// rarely share one, a random seed makes the sharing unpredictable, and they are few
// enough for the processor's cache. Nothing is allocated or cleaned up.
//
// One goroutine uses it at a time.
type limiter struct {
	seed  maphash.Seed
	start time.Time
	due   [1 << 17]uint32 // milliseconds since start, modulo 2^32
}

func newLimiter(now time.Time) *limiter { return &limiter{seed: maphash.MakeSeed(), start: now} }

// allow reports whether a packet of the client may be answered.
func (l *limiter) allow(mac pools.MAC, now time.Time) bool {
	const interval, full = uint32(clientInterval / time.Millisecond), uint32(clientBurst * clientInterval / time.Millisecond)
	due := &l.due[maphash.Comparable(l.seed, mac)%uint64(len(l.due))]
	at := uint32(now.Sub(l.start).Milliseconds())
	ahead := *due - at
	if ahead > full { // due has passed; it is never further ahead than that
		ahead = 0
	}
	if ahead+interval > full {
		return false
	}
	*due = at + ahead + interval
	return true
}
