package imagebuild

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
)

// The marks of removed files in the layers of an OCI image (image-spec,
// layer.md). They act on lower layers only, wherever they stand in their own.
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq" // the directory hides all that is below it
	whiteoutMeta   = ".wh..wh."     // AUFS bookkeeping, of no meaning here
)

// Bounds on what a layer may hold. They are far above any real image, and low
// enough that a hostile one cannot take the machine down.
const (
	maxName    = 255     // bytes in one element of a path, as in Linux
	maxPath    = 4095    // bytes in a path
	maxEntries = 4 << 20 // files in all layers
	maxMeta    = 1 << 30 // bytes in the names and attributes of all files
	maxID      = math.MaxUint32
	maxTime    = math.MaxUint32 // squashfs stores 32 bits, without sign
)

// entry is one file of a layer.
type entry struct {
	path []string
	file *file    // nil for hard links and whiteouts
	link []string // the target of a hard link
	hide hiding   // what a whiteout hides
}

// hiding is what a whiteout hides: nothing, path, or all that is below path.
type hiding byte

const (
	hideNothing hiding = iota
	hideFile
	hideChildren
)

// layerReader turns tar streams into entries.
type layerReader struct {
	spool     *spool
	whiteouts bool // the stream is a layer of an OCI image, not a root file system of its own
	entries   int  // in all streams so far
	meta      int  // bytes of names and attributes so far
}

// read reads one tar stream to its end. The contents of files go to the spool.
func (l *layerReader) read(r io.Reader) ([]entry, error) {
	var list []entry
	end := &endMark{r: r}
	for tr := tar.NewReader(end); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) && !l.whiteouts && end.zeros < tarBlock {
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
func (l *layerReader) count(h *tar.Header) error {
	l.entries++
	l.meta += len(h.Name) + len(h.Linkname)
	for key, value := range h.PAXRecords {
		l.meta += len(key) + len(value)
	}
	switch {
	case l.entries > maxEntries:
		return fmt.Errorf("the image has more than %d files", maxEntries)
	case l.meta > maxMeta:
		return fmt.Errorf("the names and attributes of the image's files are larger than %d bytes", maxMeta)
	}
	return nil
}

func (l *layerReader) entry(h *tar.Header, content io.Reader) (e entry, err error) {
	if e.path, err = cleanPath(h.Name); err != nil {
		return e, err
	}
	if l.whiteouts && e.whiteout() {
		return e, nil
	}
	if h.Typeflag == tar.TypeLink {
		if e.link, err = cleanPath(h.Linkname); err != nil {
			return e, fmt.Errorf("hard link to %q: %w", h.Linkname, err)
		}
		return e, nil
	}
	if e.file, err = newFile(h); err != nil {
		return e, err
	}
	if e.file.kind == tar.TypeReg {
		e.file.open, err = l.spool.add(content, h.Size)
	}
	return e, err
}

// whiteout tells whether the entry is a mark of OCI layers, and turns it into
// what it hides.
func (e *entry) whiteout() bool {
	for i, elem := range e.path {
		last := i == len(e.path)-1
		switch {
		case last && elem == whiteoutOpaque:
			e.path, e.hide = e.path[:i], hideChildren
			return true
		case strings.HasPrefix(elem, whiteoutMeta):
			return true
		case last && strings.HasPrefix(elem, whiteoutPrefix):
			e.path[i], e.hide = strings.TrimPrefix(elem, whiteoutPrefix), hideFile
			return true
		}
	}
	return false
}

// cleanPath makes a tar name relative to the root of the image. A leading "/"
// or "./" is common and dropped; ".." is refused: no builder writes it, and its
// only use is to escape.
func cleanPath(name string) ([]string, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return nil, errors.New("name holds a zero byte")
	}
	if len(name) > maxPath {
		return nil, fmt.Errorf("name is longer than %d bytes", maxPath)
	}
	elems := split(name)
	for _, e := range elems {
		if e == ".." {
			return nil, errors.New(`name holds ".."`)
		}
		if len(e) > maxName {
			return nil, fmt.Errorf("name has an element longer than %d bytes", maxName)
		}
	}
	return elems, nil
}

// newFile reads all of a header but names and contents.
func newFile(h *tar.Header) (*file, error) {
	f := &file{kind: h.Typeflag, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid, mtime: clampTime(h.ModTime.Unix())}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		f.kind, f.size = tar.TypeReg, h.Size
	case tar.TypeSymlink:
		f.target, f.mode = h.Linkname, 0o777
		if f.target == "" || len(f.target) > maxPath || strings.IndexByte(f.target, 0) >= 0 {
			return nil, fmt.Errorf("symbolic link to %.80q", f.target)
		}
	case tar.TypeChar, tar.TypeBlock:
		f.major, f.minor = h.Devmajor, h.Devminor
		if uint64(f.major) >= 1<<12 || uint64(f.minor) >= 1<<20 {
			return nil, fmt.Errorf("device number %d:%d is out of range", f.major, f.minor)
		}
	case tar.TypeDir, tar.TypeFifo:
	default:
		return nil, fmt.Errorf("unknown type %q", h.Typeflag)
	}
	if f.uid < 0 || f.gid < 0 || f.uid > maxID || f.gid > maxID {
		return nil, fmt.Errorf("owner %d:%d is out of range", f.uid, f.gid)
	}
	for key, value := range h.PAXRecords {
		if name, ok := strings.CutPrefix(key, paxXattr); ok {
			f.setXattr(name, value)
		}
	}
	return f, nil
}

// paxXattr is what star, GNU tar and all container builders put before the
// name of an extended attribute.
const paxXattr = "SCHILY.xattr."

// setXattr keeps an extended attribute if squashfs can store it and it means
// something on a node. POSIX ACLs (system.*) it cannot store; attributes of
// overlayfs are left-overs of the builder's own overlay, and would act on the
// node's.
func (f *file) setXattr(name, value string) {
	space, rest, _ := strings.Cut(name, ".")
	switch space {
	case "user", "trusted", "security":
	default:
		return
	}
	if rest == "" || strings.HasPrefix(rest, "overlay.") || strings.ContainsAny(name, "=\x00") || len(name) > maxName {
		return
	}
	if f.xattrs == nil {
		f.xattrs = map[string]string{}
	}
	f.xattrs[name] = value
}

func clampTime(sec int64) int64 { return min(max(sec, 0), maxTime) }

// apply puts a layer on top of the tree: first what it hides, then what it adds.
func (t *tree) apply(layer []entry) error {
	for _, e := range layer {
		t.whiteout(e)
	}
	for _, e := range layer {
		if e.file == nil && e.link == nil {
			continue
		}
		if err := t.put(e); err != nil {
			return fmt.Errorf("entry %q: %w", path.Join(e.path...), err)
		}
	}
	return nil
}

// whiteout hides what e says from the layers below. A mark names a real path:
// its directory is a directory in its own layer. If the tree has a link there,
// nothing below it is meant, except for the merged-/usr links, through which
// upper layers write.
func (t *tree) whiteout(e entry) {
	if e.hide == hideNothing || e.hide == hideFile && len(e.path) == 0 {
		return
	}
	if len(e.path) == 0 {
		clear(t.root.children)
		return
	}
	dir, err := t.dir(e.path[:len(e.path)-1], false, mergedUsr)
	if err != nil {
		return // it hides what is not there
	}
	base := e.path[len(e.path)-1]
	n := dir.children[base]
	switch {
	case n == nil:
	case e.hide == hideFile:
		delete(dir.children, base)
	case n.isDir():
		clear(n.children)
	case len(e.path) == 1 && mergedUsr(0, base, n):
		// An opaque /lib over the link lib -> usr/lib would wipe out /usr/lib.
	default:
		delete(dir.children, base)
	}
}

// mergedUsr tells whether n is one of the links that make a merged /usr, such
// as lib -> usr/lib. Many Dockerfiles copy a real lib/ over it (packages made
// before the merge ship /lib/modules); by the letter of the specification that
// replaces the link, and nothing in /usr/lib is found at its usual path any
// more: the dynamic loader is gone and the node does not boot.
func mergedUsr(depth int, name string, n *node) bool {
	return depth == 0 && n.kind == tar.TypeSymlink && path.Join("/", n.target) == "/usr/"+name
}
