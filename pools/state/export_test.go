package state

import "time"

// SetLimit makes l keep at most n leases.
func (l *Leases) SetLimit(n int) { l.limit = n }

// MaxAudit is how many entries are kept.
const MaxAudit = maxAudit

// FailWrites has each write to a log fail with what fail returns. Call it before the
// first write.
func (s *Store) FailWrites(fail func() error) {
	w := s.engine
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current.file = failingFile{w.current.file, fail}
	w.create = func(path string, size int64) (file, error) {
		f, err := createFile(path, size)
		return failingFile{f, fail}, err
	}
}

type failingFile struct {
	file
	fail func() error
}

func (f failingFile) Datasync() error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.file.Datasync()
}

// Log returns the name of the log in use and where its records end, when no write is
// under way.
func (s *Store) Log() (name string, generation uint64, end int64) {
	c := s.engine.current
	return c.name, c.generation, c.end
}

// ReadRecords counts the changes in the content of a log.
func ReadRecords(content []byte, generation uint64) (n int, end int64, err error) {
	end, err = readRecords(content, generation, func(changes []byte) error {
		return readChanges(changes, func(change) error { n++; return nil })
	})
	return n, end, err
}

// MaxQueue bounds the changes that wait for the disk, in bytes.
const MaxQueue = maxQueue

// RetryPause is how long after a failure the next log is tried again.
const RetryPause time.Duration = retryPause
