// Package atomicfile writes files that are whole or not there: after a crash at any
// instant a reader finds the old content or the new one.
//
// It imports the standard library alone, so that every package may use it, and
// knows nothing of what the files hold.
package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
)

// Write puts data into the file path with the permissions mode, durably. It
// leaves a file that holds the same data untouched. The directory must exist.
func Write(path string, data []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names in a directory durable: those of files that were
// created, renamed or removed in it.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
