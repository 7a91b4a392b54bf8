package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drover/internal/atomicfile"
	"drover/state"
	"drover/state/wal"
)

// Pending is the name of a backup in the state directory that is to be put in place.
const Pending = "restore.pending"

// lockTimeout limits the wait for a server that ends.
const lockTimeout = 2 * time.Second

// Finish puts the backup [Pending] of dir in place, and returns it; nil if there is none. A
// server that runs with dir is an error.
func Finish(dir string) (*Backup, error) {
	if _, err := os.Lstat(filepath.Join(dir, Pending)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lock, err := state.Lock(dir, lockTimeout)
	if err != nil {
		return nil, err
	}
	b, err := finish(dir, lock, func() {})
	return b, errors.Join(err, lock.Close())
}

// FinishLocked is [Finish] of a caller that holds the lock of [state.Lock].
func FinishLocked(dir string, lock *os.File) (*Backup, error) { return finish(dir, lock, func() {}) }

// finish calls step after each of its steps, for tests.
func finish(dir string, lock *os.File, step func()) (*Backup, error) {
	path := filepath.Join(dir, Pending)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // another process has finished it
	}
	b, err := Read(path)
	if err != nil {
		return nil, fmt.Errorf("a restore is not finished: %w: restore the backup again", err)
	}
	old, err := wal.Files(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		step()
	}
	if err := b.unpack(func(name string, fill func(*os.File) error) error {
		if name == state.FileName {
			return nil // it is locked, and stays the file that it is
		}
		defer step()
		return atomicfile.Create(filepath.Join(dir, name), 0o600, fill)
	}); err != nil {
		return nil, err
	}
	if err := rewrite(lock, b.state); err != nil {
		return nil, err
	}
	step()
	err = errors.Join(atomicfile.Own(lock.Name()), atomicfile.SyncDir(dir), os.Remove(path), atomicfile.SyncDir(dir), removeTries(dir))
	return b, err
}

func rewrite(f *os.File, data []byte) error {
	err := f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	return errors.Join(err, f.Sync())
}

// removeTries removes what a [Backup.Try] has left that was killed.
func removeTries(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), trying) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
