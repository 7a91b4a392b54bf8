package dhcp

import (
	"hash/maphash"
	"time"

	"drover/pools"
)

// What one client may send: so many packets at once, and then one in each
// interval. A boot is some four exchanges of two packets within seconds
// (firmware, iPXE, initrd, operating system), and clients that get no answer
// ask again after 4 s (RFC 2131, section 4.1): both stay far below.
const (
	clientBurst    = 20
	clientInterval = 200 * time.Millisecond
)

// limiter keeps a client that asks without pause from taking the time of the
// others. It remembers one moment for each bucket of MACs: when all that the
// bucket's clients sent so far would have been sent at the allowed pace. The
// buckets are many, so that clients rarely share one, which do cannot be
// foretold, and they are few enough for the processor's cache. Nothing is ever
// allocated or cleaned up.
//
// One goroutine uses it at a time.
type limiter struct {
	seed    maphash.Seed
	start   time.Time
	due     [1 << 17]uint32 // milliseconds since start, modulo 2^32
	refused outburst
}

func newLimiter(now time.Time) *limiter { return &limiter{seed: maphash.MakeSeed(), start: now} }

// allow tells whether a packet of the client is to be answered.
func (l *limiter) allow(mac pools.MAC, now time.Time) bool {
	const interval, full = uint32(clientInterval / time.Millisecond), uint32(clientBurst * clientInterval / time.Millisecond)
	due := &l.due[maphash.Comparable(l.seed, mac)%uint64(len(l.due))]
	at := uint32(now.Sub(l.start).Milliseconds())
	ahead := *due - at
	if ahead > full { // the moment has passed; it is never further ahead than that
		ahead = 0
	}
	if ahead+interval > full {
		return false
	}
	*due = at + ahead + interval
	return true
}

// outburst tells the first event of a series from the rest, so that it is
// logged once and not once for each packet.
type outburst struct{ last time.Time }

func (o *outburst) begins(now time.Time) bool {
	first := now.Sub(o.last) > 10*time.Second
	o.last = now
	return first
}
