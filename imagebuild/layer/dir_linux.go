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

// OpenDir opens a tree on disk, such as the root of a mounted container. The caller
// must be able to read all files, so a tree with other owners' private files needs
// root. Other file systems mounted in the tree (/proc of a running container) are not
// read.
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

// dirWalk reads a tree on disk into entries.
type dirWalk struct {
	ctx      context.Context
	root     *os.Root
	base     string
	dev      uint64
	seen     map[uint64][]string // the first path of each inode with several names
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
		return nil // nothing listens on it any more, and no archive can contain one
	}
	path, err := rootfs.CleanPath(name)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if err := w.layers.count(&tar.Header{Name: name}); err != nil {
		return err
	}
	e := rootfs.Entry{Path: path}
	if first := w.seen[st.Ino]; first != nil && st.Nlink > 1 && !d.IsDir() {
		e.Link = first
	} else if e.File, err = w.file(name, info, st.Ino); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	} else if st.Nlink > 1 && !d.IsDir() {
		w.seen[st.Ino] = path
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
	if err := w.layers.countMeta(len(target)); err != nil {
		return nil, err
	}
	if f, err = rootfs.NewFile(h); err != nil {
		return nil, err
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

// open opens the contents of a file. It returns an error when the file is no longer
// the one that visit found.
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
	// The second size may be smaller: only this call leaves out overlayfs' own attributes.
	for key := range strings.FieldsFuncSeq(string(names[:size]), func(r rune) bool { return r == 0 }) {
		n, err := unix.Lgetxattr(path, key, value)
		if err != nil {
			return fmt.Errorf("xattr %q: %w", key, err)
		}
		if err := w.layers.countMeta(len(key) + n); err != nil {
			return err
		}
		f.SetXattr(key, string(value[:n]))
	}
	return nil
}
