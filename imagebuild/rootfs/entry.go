package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
)

// Bounds on the files of a tree.
const (
	maxName = 255  // bytes in one element of a path, as in Linux
	maxPath = 4095 // bytes in a path
	maxID   = math.MaxUint32
	maxTime = math.MaxUint32 // squashfs stores 32 bits, without sign
)

// Entry is one file of a layer.
type Entry struct {
	Path []string
	File *File    // nil for hard links and whiteouts
	Link []string // the target of a hard link
	Hide hiding   // what a whiteout hides
}

// hiding is what a whiteout hides: nothing, path, or all that is below path.
type hiding byte

const (
	hideNothing  hiding = iota
	HideFile            // the file or directory of that name
	HideChildren        // everything below that name
)

// CleanPath makes a tar name relative to the root of the image. A leading "/"
// or "./" is common and dropped; ".." is refused: no builder writes it, and its
// only use is to escape.
func CleanPath(name string) ([]string, error) {
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

// NewFile reads all of a header but names and contents.
func NewFile(h *tar.Header) (*File, error) {
	f := &File{Kind: h.Typeflag, Mode: h.Mode & 0o7777, UID: h.Uid, GID: h.Gid, Mtime: ClampTime(h.ModTime.Unix())}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		f.Kind, f.Size = tar.TypeReg, h.Size
	case tar.TypeSymlink:
		f.Target, f.Mode = h.Linkname, 0o777
		if f.Target == "" || len(f.Target) > maxPath || strings.IndexByte(f.Target, 0) >= 0 {
			return nil, fmt.Errorf("symbolic link to %.80q", f.Target)
		}
	case tar.TypeChar, tar.TypeBlock:
		f.Major, f.Minor = h.Devmajor, h.Devminor
		if uint64(f.Major) >= 1<<12 || uint64(f.Minor) >= 1<<20 {
			return nil, fmt.Errorf("device number %d:%d is out of range", f.Major, f.Minor)
		}
	case tar.TypeDir, tar.TypeFifo:
	default:
		return nil, fmt.Errorf("unknown type %q", h.Typeflag)
	}
	if f.UID < 0 || f.GID < 0 || f.UID > maxID || f.GID > maxID {
		return nil, fmt.Errorf("owner %d:%d is out of range", f.UID, f.GID)
	}
	for key, value := range h.PAXRecords {
		if name, ok := strings.CutPrefix(key, paxXattr); ok {
			f.SetXattr(name, value)
		}
	}
	return f, nil
}

// paxXattr is what star, GNU tar and all container builders put before the
// name of an extended attribute.
const paxXattr = "SCHILY.xattr."

// SetXattr keeps an extended attribute if squashfs can store it and it means
// something on a node. POSIX ACLs (system.*) it cannot store; attributes of
// overlayfs are left-overs of the builder's own overlay, and would act on the
// node's.
func (f *File) SetXattr(name, value string) {
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

// ClampTime returns a time, in seconds since 1970, that squashfs can hold.
func ClampTime(sec int64) int64 { return min(max(sec, 0), maxTime) }

// Apply puts a layer on top of the tree: first what it hides, then what it adds.
func (t *Tree) Apply(layer []Entry) error {
	for _, e := range layer {
		t.whiteout(e)
	}
	for _, e := range layer {
		if e.File == nil && e.Link == nil {
			continue
		}
		if err := t.put(e); err != nil {
			return fmt.Errorf("entry %q: %w", path.Join(e.Path...), err)
		}
	}
	return nil
}

// whiteout hides what e says from the layers below. A mark names a real path:
// its directory is a directory in its own layer. If the tree has a link there,
// nothing below it is meant, except for the merged-/usr links, through which
// upper layers write.
func (t *Tree) whiteout(e Entry) {
	if e.Hide == hideNothing || e.Hide == HideFile && len(e.Path) == 0 {
		return
	}
	if len(e.Path) == 0 {
		clear(t.Root.Children)
		return
	}
	dir, err := t.dir(e.Path[:len(e.Path)-1], false, mergedUsr)
	if err != nil {
		return // it hides what is not there
	}
	base := e.Path[len(e.Path)-1]
	n := dir.Children[base]
	switch {
	case n == nil:
	case e.Hide == HideFile:
		delete(dir.Children, base)
	case n.isDir():
		clear(n.Children)
	case len(e.Path) == 1 && mergedUsr(0, base, n):
		// An opaque /lib over the link lib -> usr/lib would wipe out /usr/lib.
	default:
		delete(dir.Children, base)
	}
}

// mergedUsr reports whether n is one of the links that make a merged /usr, such
// as lib -> usr/lib. Many Dockerfiles copy a real lib/ over it (packages made
// before the merge ship /lib/modules); by the letter of the specification that
// replaces the link, and nothing in /usr/lib is found at its usual path any
// more: the dynamic loader is gone and the node does not boot.
func mergedUsr(depth int, name string, n *Node) bool {
	return depth == 0 && n.Kind == tar.TypeSymlink && path.Join("/", n.Target) == "/usr/"+name
}
