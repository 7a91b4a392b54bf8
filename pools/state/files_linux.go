package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The files of a generation.
const (
	logPattern      = "drover.%d.log"
	snapshotPattern = "drover.%d.snap"
)

func logName(generation uint64) string      { return fmt.Sprintf(logPattern, generation) }
func snapshotName(generation uint64) string { return fmt.Sprintf(snapshotPattern, generation) }

// generations returns the generations that dir has a file of, in order.
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

// removeBefore removes the files of earlier generations, and what a crash has left.
func (w *wal) removeBefore(generation uint64) error {
	unfinished, err := filepath.Glob(filepath.Join(w.dir, "drover.*.snap.tmp"))
	errs := []error{err}
	for _, path := range unfinished {
		errs = append(errs, os.Remove(path))
	}
	for _, pattern := range []string{snapshotPattern, logPattern} {
		all, err := generations(w.dir, pattern)
		errs = append(errs, err)
		for _, g := range all {
			if g < generation {
				errs = append(errs, os.Remove(filepath.Join(w.dir, fmt.Sprintf(pattern, g))))
			}
		}
	}
	return errors.Join(errs...)
}

// createSegment makes the log of a generation.
func (w *wal) createSegment(generation uint64, size int64) (segment, error) {
	s := segment{name: logName(generation), generation: generation, size: size}
	var err error
	if s.file, err = w.create(filepath.Join(w.dir, s.name), size); err != nil {
		return s, fmt.Errorf("log of the state: %w", err)
	}
	if err := syncDir(w.dir); err != nil {
		return s, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// diskFile is a log on disk.
type diskFile struct{ *os.File }

// createFile makes a file of so many zeros. They are written, not left out: else
// each fdatasync would have blocks to allocate.
func createFile(path string, size int64) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return diskFile{f}, nil
}

// Datasync is fdatasync(2).
func (f diskFile) Datasync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockPause is the time between two attempts to get the lock.
const lockPause = 20 * time.Millisecond

// lock opens the file at path, which it makes when it is missing, and locks it
// against other processes.
func lock(path string, timeout time.Duration) (*os.File, error) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(lockPause) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil && isAt(f, path) {
			return f, nil
		}
		if closed := f.Close(); err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(err, closed)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s is locked: another drover is running with this state directory", path)
		}
	}
}

// isAt reports whether f is still the file at path: another process may have put a
// new one there meanwhile.
func isAt(f *os.File, path string) bool {
	here, err := f.Stat()
	there, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(here, there)
}

// exists reports whether there is a file at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
