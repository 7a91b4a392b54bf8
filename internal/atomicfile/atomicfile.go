// Package atomicfile replaces files atomically: after a crash at any moment a reader
// finds either the whole old content or the whole new content. It also reads files that
// anyone may have put in place.
//
// It imports only the standard library, so that every package may use it. It knows
// nothing of the content of the files.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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
// with the permissions mode, durably. What root writes has the owner of the file before, or
// else of the directory, see [Own]. Create replaces a file or a symbolic link at path; [Follow]
// is for links that stay. The directory must exist.
func Create(path string, mode os.FileMode, fill func(*os.File) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	if err = own(f, path); err == nil {
		err = fill(f)
	}
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

// Version returns a text that changes with a file: when it is written, replaced, or comes or
// goes. It does not read the file.
func Version(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("%q is not there\n", path)
	}
	inode := uint64(0)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%q %d %d %d\n", path, inode, info.Size(), info.ModTime().UnixNano())
}

// Read returns the content of a regular file of at most limit bytes. The path may be a
// symbolic link. Read refuses directories, devices and FIFOs, and never waits for another
// process.
func Read(path string, limit int64) ([]byte, error) {
	return read(os.Stat, os.OpenFile, path, limit)
}

// ReadIn is [Read] for a file below a directory. Links must not lead out of it.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	return read(root.Stat, root.OpenFile, name, limit)
}

// Open opens a regular file as [Read] does, for files that are not read into memory.
func Open(path string) (*os.File, error) { return open(os.Stat, os.OpenFile, path) }

func read(stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error), path string, limit int64) ([]byte, error) {
	f, err := open(stat, openFile, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() <= limit {
		data, err := io.ReadAll(io.LimitReader(f, limit+1)) // it may grow meanwhile
		if err != nil || int64(len(data)) <= limit {
			return data, err
		}
	}
	return nil, fmt.Errorf("%s: more than %d bytes", path, limit)
}

func open(stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error), path string) (*os.File, error) {
	info, err := stat(path) // opening some devices has effects
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info)
	}
	f, err := openFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO by now
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func notRegular(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s: not a regular file (mode %s)", path, info.Mode())
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
