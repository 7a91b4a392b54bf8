package ra

import (
	"hash/maphash"
	"time"

	"golang.org/x/time/rate"

	"drover/pools"
)

// The limits of answers. One machine solicits a few times in each program of its boot; a
// hall of 2000 may be switched on at once.
const (
	machineBurst    = 10
	machineInterval = time.Second
	answersBurst    = 2000
	answersPerSec   = 1000

	// maxMachines is the number of buckets for MACs, in which forged ones share.
	maxMachines = 4096
)

// limits bound the answers. Its memory does not grow. One goroutine uses it.
type limits struct {
	start   time.Time
	seed    maphash.Seed    // makes it unpredictable which MACs share a bucket
	due     []time.Duration // since start: when all packets so far would be due at the pace of one machine
	answers *rate.Limiter
}

func newLimits(now time.Time) *limits {
	return &limits{now, maphash.MakeSeed(), make([]time.Duration, maxMachines), rate.NewLimiter(answersPerSec, answersBurst)}
}

// allow reports whether a machine may be answered now.
func (l *limits) allow(m pools.MAC, now time.Time) bool {
	due := &l.due[maphash.Comparable(l.seed, m)%maxMachines]
	at := now.Sub(l.start)
	next := max(*due, at) + machineInterval
	if next-at > machineBurst*machineInterval || !l.answers.AllowN(now, 1) {
		return false
	}
	*due = next
	return true
}
