package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"time"
)

// Emit writes the tree as one tar: the root first, everything sorted, hard
// links after the first name of their file. Equal trees give equal bytes.
func (t *Tree) Emit(w io.Writer, progress func(n int64)) error {
	tw := tar.NewWriter(w)
	if err := tw.WriteHeader(header(".", t.Root.File)); err != nil {
		return err
	}
	first := map[*File]string{}
	err := t.walk(func(name string, n *Node) error {
		if target, again := first[n.File]; again {
			return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target,
				Mode: n.Mode, Uid: n.UID, Gid: n.GID, ModTime: time.Unix(n.Mtime, 0)})
		}
		if !n.isDir() {
			first[n.File] = name
		}
		if err := tw.WriteHeader(header(name, n.File)); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		if n.Kind != tar.TypeReg || n.Size == 0 {
			return nil
		}
		if err := CopyFile(tw, n.File, progress); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

// header is the tar header of a file under one of its names.
func header(name string, f *File) *tar.Header {
	h := &tar.Header{Typeflag: f.Kind, Name: name, Linkname: f.Target, Size: f.Size, Mode: f.Mode,
		Uid: f.UID, Gid: f.GID, ModTime: time.Unix(f.Mtime, 0), Devmajor: f.Major, Devminor: f.Minor}
	if f.Kind == tar.TypeDir {
		h.Name += "/"
	}
	for key, value := range f.xattrs {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords[paxXattr+key] = value
	}
	return h
}

// CopyFile writes the contents of a file, which must be as long as it said.
func CopyFile(w io.Writer, f *File, progress func(n int64)) error {
	r, err := f.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.Copy(w, io.LimitReader(r, f.Size))
	progress(n)
	if err != nil {
		return err
	}
	if n != f.Size {
		return errors.New("became shorter while it was read")
	}
	return nil
}
