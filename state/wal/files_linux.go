package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"drover/internal/atomicfile"
)

// The files of a generation.
const (
	logPattern      = "drover.%d.log"
	snapshotPattern = "drover.%d.snap"
)

// growth is the number of zeros that are appended to a log at a time, in bytes.
const growth = 1 << 20

// segment is the log of one generation.
type segment struct {
	file       *os.File
	name       string
	generation uint64
	size       int64  // of the file, including zeros at its end
	end        int64  // of the records
	durable    int64  // the end of those that a power failure leaves
	vital      uint64 // number of vital records

	before      int64 // the end of the durable records in the log of the previous generation
	vitalBefore uint64
}

// createSegment creates the log of the generation after another one.
func (l *Log) createSegment(old segment) (s segment, err error) {
	s = segment{generation: old.generation + 1, before: old.durable, vitalBefore: old.vital}
	s.name = fmt.Sprintf(logPattern, s.generation)
	path := filepath.Join(l.Dir, s.name)
	if s.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return s, fmt.Errorf("log of the state: %w", err)
	}
	if err = errors.Join(s.grow(min(growth, l.Size)), s.file.Sync(), atomicfile.SyncDir(l.Dir)); err != nil {
		return s, errors.Join(fmt.Errorf("log of the state: %w", err), s.file.Close(), os.Remove(path)) // it may have filled the disk
	}
	return s, nil
}

// grow extends the file for records up to end, and leaves room for a record behind it. It
// writes zeros instead of leaving a hole, so that fdatasync does not have to allocate
// blocks.
func (s *segment) grow(end int64) error {
	if end += recordHeader; end <= s.size {
		return nil
	}
	zeros := make([]byte, max(end-s.size, min(growth, s.size)))
	n, err := s.file.WriteAt(zeros, s.size)
	s.size += int64(n)
	return err
}

// fdatasync makes the data of a file durable, but not its modification time.
func fdatasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// generations returns the generations of the files in dir that match pattern, in order.
func generations(dir, pattern string) (all []uint64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		var n uint64
		if _, err := fmt.Sscanf(e.Name(), pattern, &n); err == nil && e.Name() == fmt.Sprintf(pattern, n) {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, err
}

// HasSnapshot reports whether the directory has a snapshot. Each state has one.
func (l *Log) HasSnapshot() (bool, error) {
	all, err := generations(l.Dir, snapshotPattern)
	return len(all) > 0, err
}

// removeBefore removes the files of earlier generations, and temporary files that a crash
// has left. It keeps damaged files as *.damaged.
func (l *Log) removeBefore(generation uint64) error {
	var errs []error
	remove := os.Remove
	if l.keepDamaged {
		remove = func(path string) error { return os.Rename(path, path+".damaged") }
	}
	for _, pattern := range []string{snapshotPattern + ".tmp", snapshotPattern, logPattern} {
		all, err := generations(l.Dir, pattern)
		errs = append(errs, err)
		for _, g := range all {
			if g < generation {
				errs = append(errs, remove(filepath.Join(l.Dir, fmt.Sprintf(pattern, g))))
			}
		}
	}
	return errors.Join(errs...)
}
