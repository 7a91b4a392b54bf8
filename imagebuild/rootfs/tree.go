// Package rootfs holds a root file system in memory, without the contents of its
// files.
//
// A [Tree] begins empty. [Tree.Apply] adds one layer after the other. It handles
// whiteouts, opaque directories, hard links whose target an upper layer replaced, and
// the merged-/usr links that an upper layer must not turn into directories.
// [Tree.CheckSystem] and [Tree.Kernel] say whether it can become a node.
// [Tree.Prune] removes files that machines must not share ([DefaultExcludes]),
// [Tree.Adapt] turns the root of a container into the root of a machine, and
// [Tree.Emit] writes the whole tree as one sorted tar.
//
// The package does not know where layers come from. It reads the contents of a file
// only to write them.
package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
)

// maxLinks is the number of symbolic links that one path may lead through, as in Linux.
const maxLinks = 40

// File is an inode: everything but its names. Hard links share one File.
type File struct {
	Kind         byte  // a tar type: TypeReg, TypeDir, TypeSymlink, TypeChar, TypeBlock or TypeFifo
	Mode         int64 // permissions with setuid, setgid and sticky
	UID, GID     int
	Mtime        int64 // seconds since 1970
	Major, Minor int64
	Target       string            // of a symbolic link
	xattrs       map[string]string // by full name, such as security.capability
	lost         []string          // names of attributes that squashfs cannot store
	Size         int64
	Open         func() (io.ReadCloser, error) // opens the contents; nil for an empty file
}

// WriteContent writes the contents of a regular file to w. A file whose contents are
// shorter than its Size is an error.
func (f *File) WriteContent(w io.Writer) error {
	return f.writeContent(w, make([]byte, min(f.Size, copyBuffer)))
}

// copyBuffer is the size of the pieces in which contents are copied, in bytes.
const copyBuffer = 256 << 10

// writeContent is WriteContent with a buffer, which is not empty unless the file is.
func (f *File) writeContent(w io.Writer, buffer []byte) error {
	if f.Open == nil || f.Size == 0 {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.CopyBuffer(onlyWriter{w}, io.LimitReader(r, f.Size), buffer)
	if err == nil && n != f.Size {
		err = errors.New("became shorter while it was read")
	}
	return err
}

// onlyWriter hides the other methods of a writer, so that the buffer is used.
type onlyWriter struct{ io.Writer }

// Content returns the contents of a regular file.
func (f *File) Content() ([]byte, error) {
	var b bytes.Buffer
	err := f.WriteContent(&b)
	return b.Bytes(), err
}

// newFile returns a regular file of root with the given content.
func newFile(content []byte, mode, mtime int64) *File {
	return &File{Kind: tar.TypeReg, Mode: mode, Mtime: mtime, Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

// Node is a name in the tree. Its children are nil unless it is a directory.
type Node struct {
	File     *File
	Children map[string]*Node
}

func newDir(f *File) *Node { return &Node{File: f, Children: map[string]*Node{}} }

// implicitDir returns a directory that has files in a layer but no entry of its own.
func implicitDir() *Node { return newDir(&File{Kind: tar.TypeDir, Mode: 0o755}) }

func (n *Node) isDir() bool { return n.File.Kind == tar.TypeDir }

// names returns the names of the children, sorted by bytes.
func (n *Node) names() []string { return slices.Sorted(maps.Keys(n.Children)) }

// Tree is a root file system in memory, without the contents of its files.
type Tree struct {
	Root     *Node
	implicit int // directories that dir has made
}

// maxImplicit bounds the directories that have no entry of their own in a layer: one
// entry can make maxDepth of them.
const maxImplicit = 1 << 18

// New returns an empty tree.
func New() *Tree { return &Tree{Root: implicitDir()} }

// split cuts a path into its elements, without empty ones and ".".
func split(name string) []string {
	elems := strings.Split(name, "/")
	return slices.DeleteFunc(elems, func(e string) bool { return e == "" || e == "." })
}

// followFunc reports whether a path may lead through the symbolic link n, called
// name, at the given depth (0 is the root directory).
type followFunc func(depth int, name string, n *Node) bool

func followAll(int, string, *Node) bool { return true }

// dir resolves elems to a directory. Links never lead out of the tree: the root is
// its own parent, as in a chroot. With create, dir makes missing directories and
// replaces a file in the way by a directory.
func (t *Tree) dir(elems []string, create bool, follow followFunc) (*Node, error) {
	at := []step{{t.Root, 0}}
	links := 0
	for len(elems) > 0 {
		e := elems[0]
		elems = elems[1:]
		if e == ".." {
			at = at[:max(1, len(at)-1)]
			continue
		}
		here := at[len(at)-1]
		length := here.length + len(e) + 1
		if create && (len(at) > maxDepth || length > maxPath) {
			return nil, errDeep
		}
		n := here.node.Children[e]
		switch {
		case n != nil && n.isDir():
			at = append(at, step{n, length})
		case n != nil && n.File.Kind == tar.TypeSymlink && follow(len(at)-1, e, n):
			if links++; links > maxLinks {
				return nil, fmt.Errorf("more than %d symbolic links in one path", maxLinks)
			}
			if strings.HasPrefix(n.File.Target, "/") {
				at = at[:1]
			}
			if elems = append(split(n.File.Target), elems...); len(elems) > maxDepth {
				return nil, errDeep
			}
		case create:
			if t.implicit++; t.implicit > maxImplicit {
				return nil, fmt.Errorf("the image has more than %d directories without an entry of their own", maxImplicit)
			}
			n = implicitDir()
			here.node.Children[e] = n
			at = append(at, step{n, length})
		default:
			return nil, fs.ErrNotExist
		}
	}
	return at[len(at)-1].node, nil
}

var errDeep = fmt.Errorf("it leads through links to a path of more than %d elements or %d bytes", maxDepth, maxPath)

// step is a directory on the way that dir goes.
type step struct {
	node   *Node
	length int // bytes in its path
}

// parent resolves the directory of a path that is not empty, as dir does, and
// returns it with the last element of the path.
func (t *Tree) parent(elems []string, create bool, follow followFunc) (dir *Node, base string, err error) {
	last := len(elems) - 1
	dir, err = t.dir(elems[:last], create, follow)
	return dir, elems[last], err
}

// Lookup returns the file called name, or nil when there is none. It follows links
// in the directories of name and at its end.
func (t *Tree) Lookup(name string) *Node {
	for range maxLinks {
		elems := split(name)
		if len(elems) == 0 {
			return t.Root
		}
		dir, base, err := t.parent(elems, false, followAll)
		if err != nil {
			return nil
		}
		n := dir.Children[base]
		if n == nil || n.File.Kind != tar.TypeSymlink {
			return n
		}
		name = n.File.Target
		if !strings.HasPrefix(name, "/") {
			name = strings.Join(elems[:len(elems)-1], "/") + "/" + n.File.Target
		}
	}
	return nil
}

// put adds one file of a layer, in place of a file with the same path.
func (t *Tree) put(e Entry) error {
	if len(e.Path) == 0 {
		// The root is always 0755 and owned by root. Builders disagree about it
		// (mode 0555, 0700, their own uid), and when other users cannot search the
		// root directory, every service that does not run as root fails.
		if e.File == nil || e.File.Kind != tar.TypeDir {
			return errors.New("the root is not a directory")
		}
		return nil
	}
	dir, base, err := t.parent(e.Path, true, followAll)
	if err != nil {
		return err
	}
	old := dir.Children[base]
	switch {
	case e.Link != nil:
		f, err := t.linked(e.Link)
		if err != nil {
			return err
		}
		dir.Children[base] = &Node{File: f}
	case e.File.Kind != tar.TypeDir:
		dir.Children[base] = &Node{File: e.File}
	case old != nil && old.isDir():
		old.File = e.File
	case old != nil && len(e.Path) == 1 && mergedUsr(0, base, old):
		_, err := t.dir(e.Path, true, followAll)
		return err
	default:
		dir.Children[base] = newDir(e.File)
	}
	return nil
}

// linked returns the target of a hard link. The target must be in a lower layer, or
// earlier in the same layer.
func (t *Tree) linked(path []string) (*File, error) {
	if len(path) == 0 {
		return nil, errors.New("hard link to the root directory")
	}
	target := strings.Join(path, "/")
	dir, base, err := t.parent(path, false, followAll)
	if err != nil {
		return nil, fmt.Errorf("hard link to %q: %w", target, err)
	}
	n := dir.Children[base]
	switch {
	case n == nil:
		return nil, fmt.Errorf("hard link to %q: %w", target, fs.ErrNotExist)
	case n.isDir():
		return nil, fmt.Errorf("hard link to %q, which is a directory", target)
	}
	return n.File, nil
}

// all returns the paths and nodes of everything below the root, sorted, each
// directory before its children.
func (t *Tree) all() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) { t.Root.each("", yield) }
}

// each yields everything below n, and reports whether yield asked for all of it.
func (n *Node) each(prefix string, yield func(string, *Node) bool) bool {
	for _, base := range n.names() {
		child := n.Children[base]
		if !yield(prefix+base, child) || !child.each(prefix+base+"/", yield) {
			return false
		}
	}
	return true
}

// Size returns the size of all files of the tree, in bytes. Hard links count once.
func (t *Tree) Size() (n int64) {
	seen := map[*File]bool{}
	for _, e := range t.all() {
		if !seen[e.File] {
			seen[e.File] = true
			n += e.File.Size
		}
	}
	return n
}
