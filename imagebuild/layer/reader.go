// Package layer reads the layers of an image into the entries of a root file
// system.
//
// A [Source] is an opened image with its layers, from [OpenDir], [OpenTar] or
// package oci. A [Reader] turns a tar stream, compressed or not, into entries, and
// keeps the contents of files in a [Spool]: one temporary file without a name. It
// limits how many files, names and bytes a hostile image can make it hold.
//
// The package does not know what the entries become; it decodes whiteouts, and
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

// The marks of removed files in the layers of an OCI image (image-spec,
// layer.md). They act on lower layers only, wherever they stand in their own.
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq" // the directory hides all that is below it
	whiteoutMeta   = ".wh..wh."     // AUFS bookkeeping, of no meaning here
)

// Bounds on what an image may hold. They are far above any real image, and low
// enough that a hostile one cannot take the machine down.
const (
	MaxEntries = 4 << 20 // files in all layers
	maxMeta    = 1 << 30 // bytes in the names and attributes of all files
)

// Reader turns tar streams into entries.
type Reader struct {
	Spool     *Spool
	Whiteouts bool // the stream is a layer of an OCI image, not a root file system of its own
	entries   int  // in all streams so far
	meta      int  // bytes of names and attributes so far
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
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if err := l.count(h); err != nil {
			return nil, err
		}
		e, err := l.entry(h, tr)
		if err != nil {
			return nil, fmt.Errorf("entry %q: %w", h.Name, err)
		}
		list = append(list, e)
	}
}

// endMark looks for the block of zeros at the end of a tar, without which
// archive/tar takes one that was cut between two files for a whole one. Layers
// need no such care: they have digests.
type endMark struct {
	r     io.Reader
	zeros int // how many zeros were read last
}

// tarBlock is what tars are made of. The padding of a file is always shorter.
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

// count keeps what a hostile image can make us hold in memory within bounds.
func (l *Reader) count(h *tar.Header) error {
	l.entries++
	l.meta += len(h.Name) + len(h.Linkname)
	for key, value := range h.PAXRecords {
		l.meta += len(key) + len(value)
	}
	switch {
	case l.entries > MaxEntries:
		return fmt.Errorf("the image has more than %d files", MaxEntries)
	case l.meta > maxMeta:
		return fmt.Errorf("the names and attributes of the image's files are larger than %d bytes", maxMeta)
	}
	return nil
}

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
		e.File.Open, err = l.Spool.add(content, h.Size)
	}
	return e, err
}

// whiteout reports whether the entry is a mark of OCI layers, and turns it into
// what it hides.
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
