// Package layer reads the layers of an image into the entries of a root file
// system.
//
// A [Source] is an open image with its layers, from [OpenDir], [OpenTar] or
// package oci. A [Reader] decodes a tar stream, compressed or not, into entries, and
// stores the contents of files in a [Spool]: one temporary file without a name. It
// limits the files, names and bytes that a hostile image can make it store.
//
// The package does not know how entries form a tree. It decodes whiteouts, and
// package rootfs applies them.
package layer

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"drover/imagebuild/rootfs"
)

// Names that mark removed files in the layers of an OCI image (image-spec, layer.md).
// A mark acts on lower layers only, wherever it is in its own layer.
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq" // hides the contents of its directory in lower layers
	whiteoutMeta   = ".wh..wh."     // bookkeeping of AUFS, without a meaning here
)

// Limits of an image. They are far above any real image, and low enough that a hostile
// image cannot use up the machine's memory.
const (
	maxEntries = 1 << 20   // files in all layers
	maxMeta    = 256 << 20 // bytes in the names and attributes of all files
)

// Reader decodes tar streams into entries, one at a time.
type Reader struct {
	Spool     *Spool
	Whiteouts bool     // the stream is a layer of an OCI image, not a whole root file system
	Sockets   []string // that a directory held, and that no image can
	buffer    []byte   // for the contents of files; nil at first
}

// read reads one tar stream to its end. The contents of files go to the spool.
func (l *Reader) read(r io.Reader) ([]rootfs.Entry, error) {
	var list []rootfs.Entry
	end := &endMark{r: r}
	for tr := tar.NewReader(end); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) && !l.Whiteouts && end.zeros < tarBlock {
			return nil, errors.New("the tar ends without its end mark: it was cut short")
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, err
		}
		if err := l.Spool.count(h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		e, err := l.entry(h, tr)
		if err != nil {
			return nil, fmt.Errorf("entry %q: %w", h.Name, err)
		}
		list = append(list, e)
	}
}

// endMark counts the zeros at the end of a tar. A whole tar ends with a block of zeros,
// but archive/tar also accepts a tar that was cut between two files. Layers need no
// such check: they have digests.
type endMark struct {
	r     io.Reader
	zeros int // the number of zeros that were read last
}

// tarBlock is the size of a block of a tar, in bytes. The padding of a file is always
// shorter.
const tarBlock = 512

func (m *endMark) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	rest := len(bytes.TrimRight(b[:n], "\x00"))
	if rest > 0 {
		m.zeros = 0
	}
	m.zeros += n - rest
	return n, err
}

// perElement is the memory for an element of a path, in bytes, beside its text.
const perElement = 16

func (l *Reader) entry(h *tar.Header, content io.Reader) (e rootfs.Entry, err error) {
	if e.Path, err = rootfs.CleanPath(h.Name); err != nil {
		return e, err
	}
	if l.Whiteouts && whiteout(&e) {
		return e, nil
	}
	if h.Typeflag == tar.TypeLink {
		if e.Link, err = rootfs.CleanPath(h.Linkname); err != nil {
			return e, fmt.Errorf("hard link to %q: %w", h.Linkname, err)
		}
		return e, nil
	}
	if e.File, err = rootfs.NewFile(h); err != nil {
		return e, err
	}
	if e.File.Kind == tar.TypeReg {
		if l.buffer == nil {
			l.buffer = make([]byte, spoolChunk)
		}
		e.File.Open, err = l.Spool.add(content, h.Size, l.buffer)
	}
	return e, err
}

// whiteout reports whether the entry is a whiteout of OCI layers, and changes it to the
// path that it hides.
func whiteout(e *rootfs.Entry) bool {
	for i, elem := range e.Path {
		last := i == len(e.Path)-1
		switch {
		case last && elem == whiteoutOpaque:
			e.Path, e.Hide = e.Path[:i], rootfs.HideChildren
			return true
		case strings.HasPrefix(elem, whiteoutMeta):
			return true
		case last && strings.HasPrefix(elem, whiteoutPrefix):
			e.Path[i], e.Hide = strings.TrimPrefix(elem, whiteoutPrefix), rootfs.HideFile
			return true
		}
	}
	return false
}
