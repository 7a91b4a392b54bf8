package tftp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// File is what a transfer reads. Size must not change; *bytes.Reader with a
// Close is one.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// diskFile is a file that has the size it had when it was opened.
type diskFile struct {
	*os.File
	size int64
}

func (f diskFile) Size() int64 { return f.size }

// openBelow opens a regular file below dir. What is no regular file is answered
// as one that is not there; opening a pipe must not wait for its writer.
func openBelow(dir, name string) (File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w: it is no regular file", fs.ErrNotExist)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return diskFile{f, info.Size()}, nil
}

// refuseFile says what a client is told of a file that cannot be opened.
func refuseFile(err error) *refusal {
	if already, ok := errors.AsType[*refusal](err); ok {
		return already
	}
	r := &refusal{codeOther, "server cannot read the file", err}
	var link *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		r.code, r.told = codeNotFound, "file not found"
	case errors.Is(err, fs.ErrPermission), errors.As(err, &link):
		// Also links that lead out of the directory.
		r.code, r.told = codeAccess, "access denied"
	}
	var words interface{ Tell() string }
	if errors.As(err, &words) {
		r.told = words.Tell()
	}
	return r
}

// isOptional tells whether who opens files says that a client can do without.
func isOptional(err error) bool {
	var o interface{ Optional() bool }
	return errors.As(err, &o) && o.Optional()
}
