package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"drover/pools/atomicfile"
)

// snapshotChunk is the approximate size of a record of a snapshot, in bytes.
const snapshotChunk = 64 << 10

// snapshot writes the snapshot of a generation, and removes the earlier generations. A
// value may change while the snapshot is written, since the log has every change since
// the generation began.
func (l *Log) snapshot(generation uint64) error {
	l.mu.Lock()
	cut := l.queue.ticket
	l.mu.Unlock()
	size, err := l.writeSnapshot(generation)
	if err != nil {
		return fmt.Errorf("%s: %w", fmt.Sprintf(snapshotPattern, generation), err)
	}
	l.mu.Lock()
	l.limit = max(l.Size, 2*size)
	l.failed = slices.DeleteFunc(l.failed, func(f failure) bool { return f.last <= cut }) // the snapshot has their changes
	l.mu.Unlock()
	return l.removeBefore(generation)
}

// writeSnapshot returns the size of the snapshot, in bytes, once it is in force.
func (l *Log) writeSnapshot(generation uint64) (size int64, err error) {
	name := filepath.Join(l.Dir, fmt.Sprintf(snapshotPattern, generation))
	f, err := os.OpenFile(name+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	s := &snapshotWriter{log: l, file: f, generation: generation, record: newRecord(nil)}
	err = s.writeTables()
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = l.barrier()
	}
	if err == nil {
		err = os.Rename(name+".tmp", name)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(name+".tmp"))
	}
	return s.end, atomicfile.SyncDir(l.Dir)
}

// barrier waits until all queued changes are in the log. Each change in the snapshot is
// then in the log as well, with the other changes of its record.
func (l *Log) barrier() error {
	t, err := l.Put()
	if err != nil {
		return err
	}
	return l.Wait(t)
}

// snapshotWriter writes a snapshot in records of about snapshotChunk.
type snapshotWriter struct {
	log        *Log
	file       *os.File
	generation uint64
	end        int64
	record     []byte
}

func (s *snapshotWriter) writeTables() error {
	for id, t := range s.log.Tables {
		err := t.Each(func(key, value []byte) {
			s.record = appendChange(s.record, Change{id, key, value})
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

// between writes the record if it is large enough. No lock is held.
func (s *snapshotWriter) between() error {
	s.log.mu.Lock()
	closed := s.log.closed
	s.log.mu.Unlock()
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
