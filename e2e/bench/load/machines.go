package load

import (
	"slices"
	"time"
)

// phase is how far a machine has come.
type phase uint8

const (
	off phase = iota
	discovering
	requesting
	served
)

// patience is a machine's time limit for an answer, as perfdhcp's. A later answer counts
// as lost.
const patience = time.Second

// machine is one client. Times are since the start of the run.
type machine struct {
	phase   phase
	attempt uint16
	began   time.Duration // when it sent the first DISCOVER that may still be answered
	asked   time.Duration // when it sent its last message
}

// machines asks in turn. A transaction number is attempt<<16 | machine.
type machines struct {
	all   []machine
	retry time.Duration
	again bool // served machines ask again
	turn  int
	left  int // machines to serve until half of them are served; without retry: machines that have not asked

	count   Counts
	latency []time.Duration
}

// Counts are the messages and exchanges of a run.
type Counts struct {
	Discovers int // sent: exchanges begun
	Offers    int // received and expected
	Acks      int // received and expected: exchanges completed
	Naks      int
	Useless   int // answers that came too late or twice, or that cannot be read
}

func newMachines(n int, retry time.Duration) *machines {
	s := &machines{all: make([]machine, n), retry: retry, left: n, latency: make([]time.Duration, 0, n)}
	if retry > 0 {
		s.left = (n + 1) / 2
	}
	return s
}

// next picks the machine that sends a DISCOVER and returns its transaction number. It
// returns false if no machine may send one at this time.
func (s *machines) next(now time.Duration) (xid uint32, ok bool) {
	for range s.all {
		i := s.turn
		s.turn = (s.turn + 1) % len(s.all)
		if m := &s.all[i]; s.may(m, now) {
			if m.phase != discovering || now-m.began >= patience {
				m.began = now
			}
			if s.retry == 0 && !s.again {
				s.left--
			}
			m.phase, m.asked = discovering, now
			m.attempt++
			s.count.Discovers++
			return uint32(m.attempt)<<16 | uint32(i), true
		}
	}
	return 0, false
}

// may reports whether a machine may send a DISCOVER.
func (s *machines) may(m *machine, now time.Duration) bool {
	switch m.phase {
	case off:
		return true
	case served:
		return s.again
	case discovering:
		return s.retry > 0 && now-m.asked >= s.retry || s.again && now-m.asked >= patience
	case requesting:
		return (s.retry > 0 || s.again) && now-m.asked >= patience
	}
	return false
}

// hear handles a server's answer, and reports whether a REQUEST must follow.
func (s *machines) hear(r reply, now time.Duration) (follow bool) {
	i := int(r.xid & 0xffff)
	if i >= len(s.all) {
		s.count.Useless++
		return false
	}
	m := &s.all[i]
	switch {
	case r.kind == nak:
		s.count.Naks++
		m.phase = off
		if s.retry == 0 {
			m.phase = served // it asks only once
		}
	case now-m.asked >= patience:
		s.count.Useless++
	case r.kind == offer && m.phase == discovering:
		s.count.Offers++
		m.phase, m.asked = requesting, now
		return true
	case r.kind == ack && m.phase == requesting:
		s.count.Acks++
		m.phase = served
		if s.retry > 0 && !s.again {
			s.left--
		}
		s.latency = append(s.latency, now-m.began)
	default:
		s.count.Useless++
	}
	return false
}

// quantiles returns the latencies that the given shares of exchanges do not exceed; zero
// without exchanges. It sorts its argument.
func quantiles(latency []time.Duration, shares ...float64) []time.Duration {
	slices.Sort(latency)
	q := make([]time.Duration, len(shares))
	for i, share := range shares {
		if n := len(latency); n > 0 {
			q[i] = latency[min(n-1, int(share*float64(n)))]
		}
	}
	return q
}
