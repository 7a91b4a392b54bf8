package imagebuild

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"time"
)

// emit writes the tree as one tar: the root first, everything sorted, hard
// links after the first name of their file. Equal trees give equal bytes.
func (t *tree) emit(w io.Writer, progress func(n int64)) error {
	tw := tar.NewWriter(w)
	if err := tw.WriteHeader(header(".", t.root.file)); err != nil {
		return err
	}
	first := map[*file]string{}
	err := t.walk(func(name string, n *node) error {
		if target, again := first[n.file]; again {
			return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target,
				Mode: n.mode, Uid: n.uid, Gid: n.gid, ModTime: time.Unix(n.mtime, 0)})
		}
		if !n.isDir() {
			first[n.file] = name
		}
		if err := tw.WriteHeader(header(name, n.file)); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		if n.kind != tar.TypeReg || n.size == 0 {
			return nil
		}
		if err := copyFile(tw, n.file, progress); err != nil {
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
func header(name string, f *file) *tar.Header {
	h := &tar.Header{Typeflag: f.kind, Name: name, Linkname: f.target, Size: f.size, Mode: f.mode,
		Uid: f.uid, Gid: f.gid, ModTime: time.Unix(f.mtime, 0), Devmajor: f.major, Devminor: f.minor}
	if f.kind == tar.TypeDir {
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

// copyFile writes the contents of a file, which must be as long as it said.
func copyFile(w io.Writer, f *file, progress func(n int64)) error {
	r, err := f.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.Copy(w, io.LimitReader(r, f.size))
	progress(n)
	if err != nil {
		return err
	}
	if n != f.size {
		return errors.New("became shorter while it was read")
	}
	return nil
}
