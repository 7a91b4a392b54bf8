package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// snapshotChunk is about how long a record of a snapshot is, in bytes.
const snapshotChunk = 64 << 10

// snapshot writes what the tables hold beside the log of a generation, and removes
// the files that it replaces. The log has every change since it began, so that a
// value may change while the snapshot is written.
func (w *wal) snapshot(generation uint64) error {
	w.mu.Lock()
	cut := w.queue.ticket
	w.mu.Unlock()
	size, err := w.writeSnapshot(generation)
	if err != nil {
		return fmt.Errorf("%s: %w", snapshotName(generation), err)
	}
	w.mu.Lock()
	w.size = max(w.limit, 2*size)
	w.failed = slices.DeleteFunc(w.failed, func(f failure) bool { return f.last <= cut }) // the snapshot has what they were
	w.mu.Unlock()
	return w.removeBefore(generation)
}

// writeSnapshot returns the size of the snapshot, in bytes, once it is in force.
func (w *wal) writeSnapshot(generation uint64) (size int64, err error) {
	name := filepath.Join(w.dir, snapshotName(generation))
	f, err := os.OpenFile(name+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	s := &snapshotWriter{wal: w, file: f, generation: generation, record: newRecord(nil)}
	err = s.writeTables()
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = w.barrier()
	}
	if err == nil {
		err = os.Rename(name+".tmp", name)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(name+".tmp"))
	}
	return s.end, syncDir(w.dir)
}

// barrier waits until the log has everything that was queued before. A change that
// is in a snapshot is then in the log, together with the others of its record.
func (w *wal) barrier() error {
	t, err := w.put()
	if err != nil {
		return err
	}
	return w.wait(t)
}

// snapshotWriter writes records of some size.
type snapshotWriter struct {
	wal        *wal
	file       *os.File
	generation uint64
	end        int64
	record     []byte
}

func (s *snapshotWriter) writeTables() error {
	for id, t := range s.wal.tables {
		err := t.each(func(key, value []byte) {
			s.record = appendChange(s.record, change{id, key, value})
		}, s.between)
		if err != nil {
			return err
		}
	}
	if len(s.record) > recordHeader {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.flush() // a record without changes ends a snapshot
}

// between writes what has gathered, without a lock.
func (s *snapshotWriter) between() error {
	s.wal.mu.Lock()
	closed := s.wal.closed
	s.wal.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case len(s.record) < snapshotChunk:
		return nil
	}
	return s.flush()
}

func (s *snapshotWriter) flush() error {
	seal(s.record, s.generation, s.end)
	n, err := s.file.Write(s.record)
	s.end += int64(n)
	s.record = newRecord(s.record)
	return err
}
