package rootfs

import (
	"archive/tar"
	"fmt"
	"io"
	"time"
)

// Emit writes the tree as one tar: the root first, everything sorted, hard links
// after the first name of their file. Equal trees give equal bytes. Emit calls
// progress with the size of each file that it wrote, in bytes.
func (t *Tree) Emit(w io.Writer, progress func(n int64)) error {
	tw := tar.NewWriter(w)
	if err := tw.WriteHeader(header(".", t.Root.File)); err != nil {
		return err
	}
	first, buffer := map[*File]string{}, make([]byte, copyBuffer)
	for name, n := range t.all() {
		h := header(name, n.File)
		target, again := first[n.File]
		if again {
			h = &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target,
				Mode: n.File.Mode, Uid: n.File.UID, Gid: n.File.GID, ModTime: time.Unix(n.File.Mtime, 0)}
		} else if !n.isDir() {
			first[n.File] = name
		}
		err := tw.WriteHeader(h)
		if err == nil && !again {
			err = n.File.writeContent(tw, buffer)
			progress(n.File.Size)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return tw.Close()
}

// header returns the tar header of a file under one of its names.
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
