package state

import (
	"os"
	"time"
	"unsafe"
)

// SetLimit makes l keep at most n leases.
func (l *Leases) SetLimit(n int) { l.limit = n }

// MaxQuarantines is how many quarantines are kept.
const MaxQuarantines = maxLeases / quarantineShare

// FailWrites has each write to a log fail with what fail returns. Call it while nothing is
// written.
func (s *Store) FailWrites(fail func() error) {
	for { // the first generation may not have begun on a slow disk, and sets Sync
		if t, err := s.engine.Put(); err == nil && s.engine.Wait(t) == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	sync := s.engine.Sync
	s.engine.Sync = func(f *os.File) error {
		if err := fail(); err != nil {
			return err
		}
		return sync(f)
	}
}

// Inspected returns the number of leases that searches for an expired one have
// inspected.
func (l *Leases) Inspected() int { return l.inspected }

// SetWall returns t on a wall clock that was set by step, with the monotonic clock of t.
// The first word of a time with a monotonic clock has a flag, 33 bits of seconds and 30
// bits of nanoseconds. Package time has no way to set a clock.
func SetWall(t time.Time, step time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(step/time.Second) << 30
	return t
}
