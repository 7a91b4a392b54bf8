package tftp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// File is the content of a transfer: a *bytes.Reader with a Close method is one.
// Its size must not change. Its methods may block: they delay one transfer only.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// OnDisk is a [File] that may be on disk as it is. What the kernel has of such a file in
// memory is sent without delay.
type OnDisk interface {
	File
	Disk() *os.File // nil if the content is not that of a file on disk
}

// open opens the file of a request, whose name it cleans. text is the file for a request
// in mode netascii.
func (s *Server) open(r *request, client netip.Addr) (f File, text *textFile, err error) {
	defer s.recover(&err)
	asText := strings.EqualFold(r.mode, "netascii")
	switch {
	case r.write:
		return nil, nil, refuse(codeAccess, "server is read-only")
	case !asText && !strings.EqualFold(r.mode, "octet"):
		return nil, nil, &refusal{codeIllegal, "want mode octet or netascii", fmt.Errorf("mode %q: want octet or netascii", r.mode)}
	}
	name, err := clean(r.file)
	if err != nil {
		return nil, nil, &refusal{codeAccess, "bad file name", err}
	}
	r.file = name
	if s.Open != nil {
		f, err = s.Open(client, name)
	} else {
		f, err = openBelow(s.Dir, name)
	}
	if err != nil {
		return nil, nil, refuseFile(err)
	}
	if asText {
		text, err = asNetascii(f)
	}
	return f, text, err
}

// asNetascii returns a file in mode netascii. The error is a refusal.
func asNetascii(f File) (*textFile, error) {
	if f.Size() > maxTextFile {
		return nil, &refusal{codeIllegal, "too large for mode netascii: use octet (binary)",
			fmt.Errorf("mode netascii: file of %d bytes, at most %d have it", f.Size(), maxTextFile)}
	}
	text, err := newTextFile(f, f.Size())
	if err != nil {
		return nil, &refusal{codeOther, "server cannot read the file", err}
	}
	return text, nil
}

// read fills b from a file, which may have become shorter since it was opened.
func (s *Server) read(f io.ReaderAt, b []byte, offset int64) (err error) {
	defer s.recover(&err)
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("file became shorter")
	}
	return &refusal{codeOther, "server cannot read the file", fmt.Errorf("byte %d: %w", offset+int64(n), err)}
}

// openBelow opens a regular file below dir. Any other file counts as missing;
// opening a pipe must not wait for its writer.
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
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w: not a regular file", fs.ErrNotExist)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &diskFile{f, info.Size()}, nil
}

// diskFile is a file of a directory.
type diskFile struct {
	*os.File
	size int64
}

func (f *diskFile) Size() int64 { return f.size }

// Disk returns the file itself.
func (f *diskFile) Disk() *os.File { return f.File }

// descriptor returns the descriptor of a file that is on disk as it is, else -1.
func descriptor(f File) int {
	if d, ok := f.(OnDisk); ok {
		if file := d.Disk(); file != nil {
			return int(file.Fd())
		}
	}
	return -1
}

// readCached fills b from a file if the kernel holds that part of it in memory, and
// reports whether it does. It never waits for a disk.
func readCached(fd int, b []byte, offset int64) bool {
	if fd < 0 {
		return false
	}
	n, err := unix.Preadv2(fd, [][]byte{b}, offset, unix.RWF_NOWAIT)
	return err == nil && n == len(b)
}

// refuseFile returns the answer for a file that cannot be opened.
func refuseFile(err error) *refusal {
	r := &refusal{codeOther, "server cannot read the file", err}
	_, path := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		r.code, r.text = codeNotFound, "file not found"
	case errors.Is(err, fs.ErrPermission), path:
		// Also links that lead out of the directory.
		r.code, r.text = codeAccess, "access denied"
	}
	var own interface{ ClientText() string }
	if errors.As(err, &own) {
		r.text = own.ClientText()
	}
	return r
}

// isOptional reports whether the Open function has marked a missing file as one that the
// client does not need.
func isOptional(err error) bool {
	var o interface{ Optional() bool }
	return errors.As(err, &o) && o.Optional()
}

// maxName is the longest file name, in bytes. The longest names that firmware requests
// are GRUB's paths of modules.
const maxName = 255

// clean returns the name in a request as a path below the served directory. It returns
// an error for names that no firmware sends.
func clean(name string) (string, error) {
	// ROMs that read option 67 beyond its end append the END option.
	for strings.HasSuffix(name, "\xff") {
		name = name[:len(name)-1]
	}
	switch {
	case len(name) > maxName:
		return "", fmt.Errorf("file name of %d bytes", len(name))
	case !utf8.ValidString(name), strings.ContainsFunc(name, unicode.IsControl):
		return "", fmt.Errorf("file name %q is not text", name)
	}
	// Microsoft's loaders ask for \Boot\BCD, GRUB for /grub/grub.cfg, shim
	// for //grubx64.efi.
	name = strings.ReplaceAll(name, `\`, "/")
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", fmt.Errorf("file name %q climbs out of the directory", name)
	}
	if name = path.Clean("/" + name)[1:]; name == "" {
		return "", errors.New("no file name")
	}
	return name, nil
}
