package layer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"drover/imagebuild/rootfs"

	"golang.org/x/sys/unix"
)

// OpenDir opens a tree on disk, such as the root of a mounted container. It
// takes what the caller may read, so a tree with other owners' private files
// needs root. It stays on one file system: what is mounted in the tree (/proc
// of a running container) is left out.
func OpenDir(path string) (*Source, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	st, err := root.Stat(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	read := func(ctx context.Context, l *Reader, progress func(int64)) ([]rootfs.Entry, error) {
		w := dirWalk{ctx: ctx, root: root, base: path, dev: st.Sys().(*syscall.Stat_t).Dev,
			seen: map[uint64][]string{}, layers: l, progress: progress}
		if err := fs.WalkDir(root.FS(), ".", w.visit); err != nil {
			return nil, err
		}
		return w.list, nil
	}
	return &Source{Layers: []Layer{{Name: path, Read: read}}, Close: root.Close}, nil
}

// dirWalk makes the entries of a tree on disk.
type dirWalk struct {
	ctx      context.Context
	root     *os.Root
	base     string
	dev      uint64
	seen     map[uint64][]string // first name of each inode with several
	layers   *Reader
	progress func(int64)
	list     []rootfs.Entry
	size     int64
}

func (w *dirWalk) visit(name string, d fs.DirEntry, err error) error {
	if err == nil {
		err = w.ctx.Err()
	}
	if err != nil {
		return err
	}
	info, err := w.root.Lstat(name)
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	if info.Mode()&fs.ModeSocket != 0 {
		return nil // a left-over; no archive can hold one
	}
	path, err := rootfs.CleanPath(name)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	e := rootfs.Entry{Path: path}
	if first := w.seen[st.Ino]; first != nil && st.Nlink > 1 && !d.IsDir() {
		e.Link = first
	} else if e.File, err = w.file(name, info, st); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	} else if st.Nlink > 1 && !d.IsDir() {
		w.seen[st.Ino] = path
	}
	if w.layers.entries++; w.layers.entries > MaxEntries {
		return fmt.Errorf("the tree has more than %d files", MaxEntries)
	}
	w.list = append(w.list, e)
	if d.IsDir() && st.Dev != w.dev {
		return fs.SkipDir
	}
	return nil
}

func (w *dirWalk) file(name string, info fs.FileInfo, st *syscall.Stat_t) (*rootfs.File, error) {
	f := &rootfs.File{Mode: int64(st.Mode & 0o7777), UID: int(st.Uid), GID: int(st.Gid), Mtime: rootfs.ClampTime(info.ModTime().Unix())}
	var err error
	switch info.Mode().Type() {
	case 0:
		f.Kind, f.Size = tar.TypeReg, info.Size()
		if w.size += f.Size; w.size > w.layers.Spool.limit {
			return nil, fmt.Errorf("the tree is larger than %d bytes", w.layers.Spool.limit)
		}
		w.progress(f.Size)
		f.Open = func() (io.ReadCloser, error) { return w.open(name, st.Ino, f.Size) }
	case fs.ModeDir:
		f.Kind = tar.TypeDir
	case fs.ModeSymlink:
		f.Kind, f.Mode = tar.TypeSymlink, 0o777
		if f.Target, err = w.root.Readlink(name); err != nil {
			return nil, err
		}
	case fs.ModeNamedPipe:
		f.Kind = tar.TypeFifo
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		f.Kind = tar.TypeBlock
		if info.Mode()&fs.ModeCharDevice != 0 {
			f.Kind = tar.TypeChar
		}
		f.Major, f.Minor = int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
	default:
		return nil, fmt.Errorf("unknown type %s", info.Mode().Type())
	}
	return f, w.xattrs(name, f)
}

// open opens a file again for its contents, and makes sure it is still the one
// that was seen.
func (w *dirWalk) open(name string, ino uint64, size int64) (io.ReadCloser, error) {
	r, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := r.Stat()
	if err == nil && (st.Sys().(*syscall.Stat_t).Ino != ino || st.Size() != size) {
		err = fmt.Errorf("%q changed while it was read", name)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// xattrs reads the extended attributes of a file. Some file systems have none.
func (w *dirWalk) xattrs(name string, f *rootfs.File) error {
	path := filepath.Join(w.base, name)
	size, err := unix.Llistxattr(path, nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list xattrs: %w", err)
	}
	names := make([]byte, size)
	if size, err = unix.Llistxattr(path, names); err != nil {
		return fmt.Errorf("list xattrs: %w", err)
	}
	value := make([]byte, 64<<10) // XATTR_SIZE_MAX of Linux
	// The second size may be smaller: overlayfs hides its own attributes late.
	for key := range strings.FieldsFuncSeq(string(names[:size]), func(r rune) bool { return r == 0 }) {
		n, err := unix.Lgetxattr(path, key, value)
		if err != nil {
			return fmt.Errorf("xattr %q: %w", key, err)
		}
		f.SetXattr(key, string(value[:n]))
	}
	return nil
}
