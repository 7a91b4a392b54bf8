// Package atomicfile writes files that are whole or not there: after a crash at any
// instant a reader finds the old content or the new one.
//
// It imports the standard library alone, so that every package may use it, and
// knows nothing of what the files hold.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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

// ReadOrMake returns the content of a file of secrets. If there is none, it writes what
// generate returns, with the mode 0600, and isNew is true. A file that others than its
// owner can read is an error.
func ReadOrMake(path string, generate func() ([]byte, error)) (data []byte, isNew bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if data, err = generate(); err == nil {
			err = Write(path, data, 0o600)
		}
		return data, err == nil, err
	case err != nil:
		return nil, false, err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return nil, false, fmt.Errorf("%s: others can read it (mode %s): chmod 600, or remove it to have a new one made", path, info.Mode())
	}
	data, err = os.ReadFile(path)
	return data, false, err
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
