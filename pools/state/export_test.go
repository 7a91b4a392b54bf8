package state

import "os"

// SetLimit makes l keep at most n leases.
func (l *Leases) SetLimit(n int) { l.limit = n }

// MaxAudit is how many entries are kept.
const MaxAudit = maxAudit

// FailWrites has each write to a log fail with what fail returns. Call it before the
// first write.
func (s *Store) FailWrites(fail func() error) {
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
