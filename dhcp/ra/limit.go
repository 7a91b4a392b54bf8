package ra

import (
	"hash/maphash"
	"time"

	"golang.org/x/time/rate"

	"drover/dhcp/ratelimit"
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
	seed     maphash.Seed // makes it unpredictable which MACs share a bucket
	machines *ratelimit.Limiter
	answers  *rate.Limiter
}

func newLimits(now time.Time) *limits {
	return &limits{maphash.MakeSeed(), ratelimit.New(now, maxMachines, machineBurst, machineInterval), rate.NewLimiter(answersPerSec, answersBurst)}
}

// allow reports whether a machine may be answered now.
func (l *limits) allow(m pools.MAC, now time.Time) bool {
	return l.machines.Allow(maphash.Comparable(l.seed, m), now) && l.answers.AllowN(now, 1)
}
