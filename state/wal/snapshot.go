package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"drover/internal/atomicfile"
	"drover/internal/wait"
)

// snapshot writes the snapshot of a generation, and removes the earlier generations. A
// value may change while the snapshot is written, since the log has every change since
// the generation began. barrier returns when all changes queued so far are in the log.
func (l *Log) snapshot(generation uint64, barrier func() error) error {
	l.mu.Lock()
	cut := l.queue.ticket
	l.mu.Unlock()
	size, err := l.writeSnapshot(generation, barrier)
	if err != nil {
		return fmt.Errorf("%s: %w", fmt.Sprintf(snapshotPattern, generation), err)
	}
	l.mu.Lock()
	l.limit = max(l.Size, 2*size)
	// The snapshot has the changes of all batches before cut. The batch cut itself was still being
	// filled: what joined it later may have changed a value that was already written.
	l.failed = slices.DeleteFunc(l.failed, func(f failure) bool { return f.last < cut })
	l.mu.Unlock()
	return nil
}

// writeSnapshot returns the size of the snapshot, in bytes, once it is in force.
func (l *Log) writeSnapshot(generation uint64, barrier func() error) (size int64, err error) {
	name := filepath.Join(l.Dir, fmt.Sprintf(snapshotPattern, generation))
	f, err := os.OpenFile(name+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	s := &snapshotWriter{log: l, file: f, generation: generation}
	err = s.writeTables()
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = barrier()
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

// snapshotChunk is the number of bytes that are written together.
const snapshotChunk = 64 << 10

// snapshotWriter writes a snapshot with a record for each value, so that damage to one
// leaves the others. The vital tables are first.
type snapshotWriter struct {
	log        *Log
	file       *os.File
	generation uint64
	end        int64
	buffer     []byte
	pace       wait.Pace
}

func (s *snapshotWriter) writeTables() error {
	rest := false
	for _, id := range s.log.order() {
		t := s.log.Tables[id]
		if t.Vital == "" && !rest {
			rest = true
			s.add(logChange(keyRest, 0))
		}
		if err := t.Each(func(key, value []byte) { s.add(Change{id, key, value}) }, s.between); err != nil {
			return err
		}
	}
	if !rest {
		s.add(logChange(keyRest, 0))
	}
	s.add() // a record without changes ends a snapshot
	return s.flush()
}

// add appends a record.
func (s *snapshotWriter) add(changes ...Change) {
	begin := len(s.buffer)
	s.buffer = append(s.buffer, make([]byte, recordHeader)...)
	for _, c := range changes {
		s.buffer = appendChange(s.buffer, c)
	}
	record := s.buffer[begin:]
	seal(record, s.generation, s.end)
	s.end += int64(len(record))
}

// between writes the records if they are large enough, and gives way. No lock is held.
func (s *snapshotWriter) between() error {
	s.pace.Step()
	s.log.mu.Lock()
	closed := s.log.closed
	s.log.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case len(s.buffer) < snapshotChunk:
		return nil
	}
	return s.flush()
}

func (s *snapshotWriter) flush() error {
	_, err := s.file.Write(s.buffer)
	s.buffer = s.buffer[:0]
	return err
}
