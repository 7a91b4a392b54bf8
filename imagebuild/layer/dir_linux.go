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
	"sync"
	"syscall"

	"drover/imagebuild/rootfs"

	"golang.org/x/sys/unix"
)

// OpenDir opens a tree on disk, such as the root of a mounted container. The caller
// must be able to read all files, so a tree with other owners' private files needs
// root. Other file systems mounted in the tree (/proc of a running container) are not
// read.
//
// Path may be the root of the running container, also in the middle of its build: without
// is a directory that is left out, the one that the image is written to, and files that
// the container engine mounted (etc/hosts, etc/hostname, etc/resolv.conf) are empty.
func OpenDir(path, without string) (*Source, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	st, err := root.Stat(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	skip, err := os.Stat(without)
	if err != nil {
		skip = nil
	}
	w := &dirWalk{root: root, base: path, dev: st.Sys().(*syscall.Stat_t).Dev, skip: skip, seen: map[inode][]string{}}
	read := func(ctx context.Context, l *Reader, progress func(int64)) ([]rootfs.Entry, error) {
		w.ctx, w.layers, w.progress = ctx, l, progress
		if err := fs.WalkDir(root.FS(), ".", w.visit); err != nil {
			return nil, err
		}
		return w.list, nil
	}
	return &Source{Layers: []Layer{{Name: path, Read: read}}, Close: w.close}, nil
}

// dirWalk reads a tree on disk into entries.
type dirWalk struct {
	ctx      context.Context
	root     *os.Root
	mu       sync.Mutex // of last and lastName
	last     *os.Root   // the directory that was used last; nil at first
	lastName string
	base     string
	dev      uint64
	skip     fs.FileInfo        // a directory that is left out; may be nil
	seen     map[inode][]string // the first path of each inode with several names
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
	var info fs.FileInfo
	err = w.in(name, func(dir *os.Root, base string) (err error) {
		info, err = dir.Lstat(base)
		return err
	})
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	if info.Mode()&fs.ModeSocket != 0 {
		w.layers.Sockets = append(w.layers.Sockets, name)
		return nil // nothing listens on it any more, and no archive can contain one
	}
	if w.skip != nil && name != "." && os.SameFile(info, w.skip) {
		return fs.SkipDir
	}
	path, err := rootfs.CleanPath(name)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if err := w.layers.Spool.count(&tar.Header{Name: name}); err != nil {
		return err
	}
	e := rootfs.Entry{Path: path}
	id := inode{st.Dev, st.Ino}
	if first := w.seen[id]; first != nil && st.Nlink > 1 && !d.IsDir() {
		e.Link = first
	} else if e.File, err = w.file(name, info, st.Ino); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	} else if st.Nlink > 1 && !d.IsDir() {
		w.seen[id] = path
	}
	w.list = append(w.list, e)
	if d.IsDir() && st.Dev != w.dev {
		return fs.SkipDir
	}
	return nil
}

func (w *dirWalk) file(name string, info fs.FileInfo, ino uint64) (f *rootfs.File, err error) {
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = w.root.Readlink(name); err != nil {
			return nil, err
		}
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return nil, err
	}
	if err := w.layers.Spool.countMeta(len(target)); err != nil {
		return nil, err
	}
	if f, err = rootfs.NewFile(h); err != nil {
		return nil, err
	}
	if w.engines(name) {
		f.Size = 0
		return f, nil
	}
	if f.Kind == tar.TypeReg {
		if w.size += f.Size; w.size > w.layers.Spool.limit {
			return nil, fmt.Errorf("the tree is larger than %d bytes", w.layers.Spool.limit)
		}
		w.progress(f.Size)
		f.Open = func() (io.ReadCloser, error) { return w.open(name, ino, f.Size) }
	}
	return f, w.xattrs(name, f)
}

// in calls use with the directory of a file and the file's name in it. Files come sorted,
// so it keeps the last directory open: a path has many elements, and each costs a system
// call.
func (w *dirWalk) in(name string, use func(dir *os.Root, base string) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir, base := filepath.Split(name)
	if dir = filepath.Clean(dir); w.last == nil || dir != w.lastName {
		next, err := w.root.OpenRoot(dir)
		if err != nil {
			return err
		}
		if w.last != nil {
			w.last.Close()
		}
		w.last, w.lastName = next, dir
	}
	return use(w.last, base)
}

// close closes what in has opened, and the root.
func (w *dirWalk) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil {
		w.last.Close()
		w.last = nil
	}
	return w.root.Close()
}

// inode is the identity of a file. In an overlay two files with one number can be on
// different devices.
type inode struct{ dev, ino uint64 }

// engines reports whether a file is one that a container engine mounted over that of the
// image: it describes the container, and the host that builds it.
func (w *dirWalk) engines(name string) bool {
	switch name {
	case "etc/hosts", "etc/hostname", "etc/resolv.conf":
	default:
		return false
	}
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, filepath.Join(w.base, name), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// open opens the contents of a file. It returns an error when the file is no longer
// the one that visit found.
func (w *dirWalk) open(name string, ino uint64, size int64) (io.ReadCloser, error) {
	var r *os.File
	err := w.in(name, func(dir *os.Root, base string) (err error) {
		r, err = dir.OpenFile(base, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		return err
	})
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
	// The second size may be smaller: only this call leaves out overlayfs' own attributes.
	for key := range strings.FieldsFuncSeq(string(names[:size]), func(r rune) bool { return r == 0 }) {
		n, err := unix.Lgetxattr(path, key, value)
		if err != nil {
			return fmt.Errorf("xattr %q: %w", key, err)
		}
		if err := w.layers.Spool.countMeta(len(key) + n); err != nil {
			return err
		}
		f.SetXattr(key, string(value[:n]))
	}
	return nil
}
