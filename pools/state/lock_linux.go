package state

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is the time between two attempts to get the lock.
const lockPause = 20 * time.Millisecond

// isLocked is an error text, to print after the name of a file.
const isLocked = "is locked: another drover is running with this state directory"

// lock opens or creates the file at path, and locks it against other processes. It waits
// for the lock until timeout.
func lock(path string, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state file: %w", err)
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(lockPause) {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return f, nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
		case time.Now().After(deadline):
			return nil, errors.Join(fmt.Errorf("%s %s", path, isLocked), f.Close())
		}
	}
}
