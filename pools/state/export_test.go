package state

import (
	"bytes"
	"os"
)

// SetLimit makes l keep at most n leases.
func (l *Leases) SetLimit(n int) { l.limit = n }

// FailJournal has each write to the journal fail with what fail returns. Call
// it before the first commit.
func (s *Store) FailJournal(fail func() error) {
	for i, f := range s.journal.files {
		s.journal.files[i] = failingFile{f, fail}
	}
}

type failingFile struct {
	journalFile
	fail func() error
}

func (f failingFile) Datasync() error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.journalFile.Datasync()
}

// ReadJournal counts the changes in the content of a journal file.
func ReadJournal(content []byte, generation uint64) (int, error) {
	f := memoryFile{bytes.NewReader(content)}
	j := &journal{files: [2]journalFile{f, f}, size: int64(len(content)), generation: generation}
	ops, err := j.read()
	return len(ops), err
}

type memoryFile struct{ *bytes.Reader }

func (memoryFile) WriteAt([]byte, int64) (int, error) { return 0, os.ErrInvalid }
func (memoryFile) Datasync() error                    { return nil }
func (memoryFile) Close() error                       { return nil }

// MaxAudit is how many entries are kept.
const MaxAudit = maxAudit

// HoldTable keeps all writes to the state file waiting, as a hanging disk would,
// until release is called.
func (s *Store) HoldTable() (release func() error, err error) {
	tx, err := s.db.Begin(true)
	if err != nil {
		return nil, err
	}
	return tx.Rollback, nil
}
