// Package shed has the kernel drop a share of the packets that begin an exchange, DISCOVERs
// and SOLICITs, while more arrive than can be read. Without it the full buffer of the socket
// drops REQUESTs just as well, and with each the work for an offer is lost. The DHCP servers
// of both families use it.
//
// The share is random, because nobody has read the packets. A [Shedder] decides on the share,
// and [Random] is the part of a socket's filter that drops it. The package does not know
// sockets, and which packets may be dropped.
package shed

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/net/bpf"

	"drover/internal/wait"
)

const (
	// Backlog is how many full batches are read in a row when packets come faster than they
	// can be read: with batches of 64 some 4000 packets, which fill the buffer of a socket.
	Backlog = 64

	// All is the share of a filter that lets all packets pass. Shares are parts of it.
	All = math.MaxUint32

	interval = 50 * time.Millisecond
	least    = All / 64
)

// Shedder adjusts the share of packets that pass. It grows while the queue does not overflow,
// and shrinks while it does. When all pass again, the shedder waits for the next backlog.
type Shedder struct {
	Set func(passed uint32) error // sets the share that passes, in parts of All; nil: nothing is shed

	full     int // batches in a row
	overflow atomic.Bool
	running  atomic.Bool
}

// Read is called for each batch of packets, by one goroutine. full reports whether the batch
// could have held no more. Read reports whether Run has to begin.
func (s *Shedder) Read(full bool) bool {
	if s.full++; !full {
		s.full = 0
	}
	return s.Set != nil && s.full >= Backlog && s.overflow.Load() && s.running.CompareAndSwap(false, true)
}

// Overflow records that the queue has dropped a packet which shedding would have spared.
func (s *Shedder) Overflow() { s.overflow.Store(true) }

// Run adjusts the share until all packets pass, or ctx ends.
func (s *Shedder) Run(ctx context.Context) error {
	defer s.running.Store(false)
	for passed := uint32(All); wait.Sleep(ctx, interval) == nil; {
		if passed = s.next(passed); passed == All {
			break
		}
		if err := s.Set(passed); err != nil {
			return err
		}
	}
	return s.Set(All)
}

// next returns the share that follows: less after an overflow of the queue.
func (s *Shedder) next(passed uint32) uint32 {
	factor := 1.2
	if s.overflow.Swap(false) {
		factor = 0.7
	}
	return uint32(max(least, min(All, float64(passed)*factor)))
}

// RandomLength is the number of instructions of [Random].
const RandomLength = 3

// Random returns the instructions that let a random share of packets reach the instruction
// behind them, and drop the others.
func Random(passed uint32) [RandomLength]bpf.Instruction {
	return [...]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtRand},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: passed, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
	}
}
