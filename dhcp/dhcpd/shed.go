package dhcpd

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"drover/pools/wait"
)

const (
	// backlog is how many full batches the intake reads in a row when packets come
	// faster than it can read them: some 4000, which fill the buffer of a socket.
	backlog = 64

	shedInterval = 50 * time.Millisecond

	passAll   = math.MaxUint32
	passLeast = passAll / 64
)

// shedder has the kernel drop a share of the DISCOVERs while more packets arrive than
// can be read. Without it the full buffer of the socket drops REQUESTs just as well, and
// with each the work for an OFFER is lost. The share is random, because nobody has read
// the packets: it grows while the queue overflows, and shrinks while it does not. When it
// is zero again, the shedder waits for the next backlog.
type shedder struct {
	set      func(passed uint32) error // sets the share of the DISCOVERs that pass, of passAll; nil: nothing is shed
	full     int                       // batches in a row
	overflow atomic.Bool               // of the queue, since the last look
	running  atomic.Bool
}

// read is called with the size of each batch. It reports whether run has to begin.
func (s *shedder) read(count int) bool {
	if s.full++; count < batchLength {
		s.full = 0
	}
	return s.set != nil && s.full >= backlog && s.overflow.Load() && s.running.CompareAndSwap(false, true)
}

// run adjusts the share until all DISCOVERs pass, or ctx ends.
func (s *shedder) run(ctx context.Context) error {
	defer s.running.Store(false)
	for passed := uint32(passAll); wait.Sleep(ctx, shedInterval) == nil; {
		if passed = s.next(passed); passed == passAll {
			break
		}
		if err := s.set(passed); err != nil {
			return err
		}
	}
	return s.set(passAll)
}

// next returns the share that follows: less after an overflow of the queue.
func (s *shedder) next(passed uint32) uint32 {
	factor := 1.2
	if s.overflow.Swap(false) {
		factor = 0.7
	}
	return uint32(max(passLeast, min(passAll, float64(passed)*factor)))
}
