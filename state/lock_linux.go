package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is the time between two attempts to get the lock.
const lockPause = 20 * time.Millisecond

// Lock locks the state directory dir against other processes, as [Open] does, until the file
// that it returns is closed. That is [FileName], which it makes if it does not exist.
func Lock(dir string, timeout time.Duration) (*os.File, error) {
	return lock(filepath.Join(dir, FileName), timeout)
}

// lock opens or creates the file at path, and locks it against other processes. It waits
// for the lock until timeout.
func lock(path string, timeout time.Duration) (*os.File, error) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(lockPause) {
		f, err := openState(path)
		if err != nil {
			return nil, fmt.Errorf("state file: %w", err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isAt(f, path) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		switch {
		case err != nil && !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("%s: %w", path, err)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("%s is locked: another drover is running with this state directory", path)
		}
	}
}

// openState opens a state file, on a read-only disk for reading alone. It asks to create
// the file only if it does not exist: on a frozen disk that would hang.
func openState(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	case errors.Is(err, unix.EROFS), errors.Is(err, fs.ErrPermission):
		return os.Open(path)
	}
	return f, err
}

// isAt reports whether the file is still the one at path: another process may have
// replaced it before it ended.
func isAt(f *os.File, path string) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(a, b)
}
