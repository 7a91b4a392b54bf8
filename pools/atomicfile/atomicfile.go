// Package atomicfile replaces files atomically: after a crash at any moment a reader
// finds either the whole old content or the whole new content.
//
// It imports only the standard library, so that every package may use it. It knows
// nothing of the content of the files.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of the file path with data, durably, and sets its
// permissions to mode. A file that already holds data stays untouched. The directory
// must exist.
func Write(path string, data []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return Create(path, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// Create calls fill with a new hidden file beside path, and then makes it the file path
// with the permissions mode, durably. It replaces a file or a symbolic link at path. The
// directory must exist.
func Create(path string, mode os.FileMode, fill func(*os.File) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = fill(f)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(dir)
}

// ReadOrMake returns the content of a file of secrets. If the file does not exist, it
// writes the result of generate with mode 0600, and isNew is true. A file that other
// users can read is an error.
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

// SyncDir makes the file names of a directory durable, after files were created,
// renamed or removed in it.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
