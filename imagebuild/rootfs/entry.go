package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// Bounds on the files of a tree.
const (
	maxName  = 255  // bytes in one element of a path, as in Linux
	maxPath  = 4095 // bytes in a path
	maxDepth = 256  // elements in a path; real images have some 30
	maxID    = math.MaxUint32
	maxTime  = math.MaxUint32 // squashfs stores 32 bits, without sign
)

// Entry is one file of a layer.
type Entry struct {
	Path []string
	File *File    // nil for hard links and whiteouts
	Link []string // the target of a hard link
	Hide hiding   // the files that a whiteout hides
}

// hiding is the kind of a whiteout: none, one of the path, or one of all files below it.
type hiding byte

// The kinds of whiteouts.
const (
	hideNothing  hiding = iota
	HideFile            // hides the file or directory of the path
	HideChildren        // hides everything below the path
)

// CleanPath returns the elements of a name in a tar, relative to the root of the image.
// A leading "/" or "./" is common and dropped. ".." is an error: no builder writes it,
// and its only use is to escape from the root.
func CleanPath(name string) ([]string, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return nil, errors.New("name holds a zero byte")
	}
	if len(name) > maxPath {
		return nil, fmt.Errorf("name is longer than %d bytes", maxPath)
	}
	elems := split(name)
	if len(elems) > maxDepth {
		return nil, fmt.Errorf("name has more than %d elements", maxDepth)
	}
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

// NewFile returns the file that a header describes, without its names and contents.
func NewFile(h *tar.Header) (*File, error) {
	f := &File{Kind: h.Typeflag, Mode: h.Mode & 0o7777, UID: h.Uid, GID: h.Gid, Mtime: clampTime(h.ModTime.Unix())}
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
	for _, key := range slices.Sorted(maps.Keys(h.PAXRecords)) {
		if name, ok := strings.CutPrefix(key, paxXattr); ok {
			f.SetXattr(name, h.PAXRecords[key])
		}
		if kind, ok := strings.CutPrefix(key, paxACL); ok {
			f.lose("system.posix_acl_" + kind)
		}
	}
	return f, nil
}

// paxXattr is the prefix that star, GNU tar and all container builders put before the
// name of an extended attribute.
const paxXattr = "SCHILY.xattr."

// paxACL is the prefix of star and GNU tar for POSIX ACLs as text: access and default.
const paxACL = "SCHILY.acl."

// maxLost bounds the attributes of one file that [Tree.Lost] names.
const maxLost = 8

// lose remembers an attribute that squashfs cannot store.
func (f *File) lose(name string) {
	if len(f.lost) < maxLost && !slices.Contains(f.lost, name) {
		f.lost = append(f.lost, name)
	}
}

// SetXattr sets an extended attribute, if squashfs can store it and it has a meaning on
// a node. Squashfs cannot store POSIX ACLs (system.*): [Tree.Lost] names these.
// Attributes of overlayfs are remains of the builder's own overlay, and would act on the
// overlay of the node.
func (f *File) SetXattr(name, value string) {
	space, rest, _ := strings.Cut(name, ".")
	if strings.HasPrefix(rest, "overlay.") {
		return
	}
	switch space {
	case "user", "trusted", "security":
	default:
		f.lose(name)
		return
	}
	if rest == "" || strings.ContainsAny(name, "=\x00") || len(name) > maxName {
		f.lose(name)
		return
	}
	if f.xattrs == nil {
		f.xattrs = map[string]string{}
	}
	f.xattrs[name] = value
}

// clampTime returns the time nearest to sec that squashfs can store.
func clampTime(sec int64) int64 { return min(max(sec, 0), maxTime) }

// Apply adds a layer to the tree: first its whiteouts, then its files.
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

// whiteout removes the files of lower layers that e hides. A whiteout has a real path:
// its directory is a directory in its own layer. Where the tree has a link instead, the
// whiteout does not mean files below the target of that link, except for the
// merged-/usr links, through which upper layers write.
func (t *Tree) whiteout(e Entry) {
	if e.Hide == hideNothing || e.Hide == HideFile && len(e.Path) == 0 {
		return
	}
	if len(e.Path) == 0 {
		clear(t.Root.Children)
		return
	}
	dir, base, err := t.parent(e.Path, false, mergedUsr)
	if err != nil {
		return // there is nothing to hide
	}
	n := dir.Children[base]
	switch {
	case n == nil:
	case e.Hide == HideFile:
		delete(dir.Children, base)
	case n.isDir():
		clear(n.Children)
	case len(e.Path) == 1 && mergedUsr(0, base, n):
		// An opaque /lib over the link lib -> usr/lib would empty /usr/lib.
	default:
		delete(dir.Children, base)
	}
}

// mergedUsr reports whether n is one of the links of a merged /usr, such as
// lib -> usr/lib. Many Dockerfiles copy a real lib/ over it (packages made before the
// merge ship /lib/modules). According to the specification that replaces the link.
// Then no file of /usr/lib is found at its usual path, not even the dynamic loader, and
// the node does not boot.
func mergedUsr(depth int, name string, n *Node) bool {
	return depth == 0 && n.File.Kind == tar.TypeSymlink && path.Join("/", n.File.Target) == "/usr/"+name
}
