// Package rootfs is a root file system in memory, without the contents of its files.
//
// A [Tree] begins empty. Layers are put on top of each other with Apply: whiteouts,
// opaque directories, hard links whose target an upper layer replaced, and the
// merged-/usr links that an upper layer must not turn into directories. Prune
// leaves out what many machines must not share ([DefaultExcludes]), Adapt makes
// the image of a container one of a machine, and Emit writes the whole tree as one
// sorted tar.
//
// The package does not know where layers come from, and reads a file only to
// write it.
package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links one path may lead through, as in Linux.
const maxLinks = 40

// File is an inode: everything but its names. Hard links share one.
type File struct {
	Kind         byte  // a tar type: TypeReg, TypeDir, TypeSymlink, TypeChar, TypeBlock or TypeFifo
	Mode         int64 // permissions with setuid, setgid and sticky
	UID, GID     int
	Mtime        int64 // seconds since 1970
	Major, Minor int64
	Target       string            // of a symbolic link
	xattrs       map[string]string // by full name, such as security.capability
	Size         int64
	Open         func() (io.ReadCloser, error) // the contents; nil when there are none
}

// Reader opens the contents of a regular file.
func (f *File) Reader() (io.ReadCloser, error) {
	if f.Open == nil {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	return f.Open()
}

// bytesFile is a regular file of root's that the builder itself made.
func bytesFile(content []byte, mode, mtime int64) *File {
	return &File{Kind: tar.TypeReg, Mode: mode, Mtime: mtime, Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

// Node is a name in the tree. Its children are nil unless it is a directory.
type Node struct {
	*File
	Children map[string]*Node
}

func newDir(f *File) *Node { return &Node{File: f, Children: map[string]*Node{}} }

// implicitDir is a directory that no layer describes although it has files.
func implicitDir() *Node { return newDir(&File{Kind: tar.TypeDir, Mode: 0o755}) }

func (n *Node) isDir() bool { return n.Kind == tar.TypeDir }

// names returns the names of the children, sorted by bytes.
func (n *Node) names() []string { return slices.Sorted(maps.Keys(n.Children)) }

// Tree is a root file system in memory, without the contents of its files.
type Tree struct{ Root *Node }

// New returns an empty tree.
func New() *Tree { return &Tree{Root: implicitDir()} }

// split cuts a path into its elements, without empty ones and ".".
func split(name string) []string {
	elems := strings.Split(name, "/")
	return slices.DeleteFunc(elems, func(e string) bool { return e == "" || e == "." })
}

// followFunc decides whether a path may lead through the symbolic link n,
// called name, at the given depth (0 is the root directory).
type followFunc func(depth int, name string, n *Node) bool

func followAll(int, string, *Node) bool { return true }

// dir resolves elems to a directory. Links never lead out of the tree: the
// root is its own parent, as in a chroot. With create, missing directories are
// made, and what is no directory gives way to one.
func (t *Tree) dir(elems []string, create bool, follow followFunc) (*Node, error) {
	at := []*Node{t.Root}
	links := 0
	for len(elems) > 0 {
		e := elems[0]
		elems = elems[1:]
		if e == ".." {
			at = at[:max(1, len(at)-1)]
			continue
		}
		here := at[len(at)-1]
		n := here.Children[e]
		switch {
		case n != nil && n.isDir():
			at = append(at, n)
		case n != nil && n.Kind == tar.TypeSymlink && follow(len(at)-1, e, n):
			if links++; links > maxLinks {
				return nil, fmt.Errorf("more than %d symbolic links in one path", maxLinks)
			}
			if strings.HasPrefix(n.Target, "/") {
				at = at[:1]
			}
			elems = append(split(n.Target), elems...)
		case create:
			n = implicitDir()
			here.Children[e] = n
			at = append(at, n)
		default:
			return nil, fs.ErrNotExist
		}
	}
	return at[len(at)-1], nil
}

// Lookup finds name, following links in its directories and, up to the usual
// number of times, at its end. It returns nil when there is no such file.
func (t *Tree) Lookup(name string) *Node {
	for range maxLinks {
		elems := split(name)
		if len(elems) == 0 {
			return t.Root
		}
		dir, err := t.dir(elems[:len(elems)-1], false, followAll)
		if err != nil {
			return nil
		}
		n := dir.Children[elems[len(elems)-1]]
		if n == nil || n.Kind != tar.TypeSymlink {
			return n
		}
		name = n.Target
		if !strings.HasPrefix(name, "/") {
			name = strings.Join(elems[:len(elems)-1], "/") + "/" + n.Target
		}
	}
	return nil
}

// put adds one file of a layer on top of what is there.
func (t *Tree) put(e Entry) error {
	if len(e.Path) == 0 {
		return t.putRoot(e)
	}
	dir, err := t.dir(e.Path[:len(e.Path)-1], true, followAll)
	if err != nil {
		return err
	}
	base := e.Path[len(e.Path)-1]
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

// putRoot takes nothing from a layer's root entry: the root is always 0755 and
// root's, see [tree.emit]. Builders disagree about it (mode 0555, 0700, their
// own uid), and with a root directory that others cannot search, every service
// that is not root's fails.
func (t *Tree) putRoot(e Entry) error {
	if e.File == nil || e.File.Kind != tar.TypeDir {
		return errors.New("the root is not a directory")
	}
	return nil
}

// linked finds the target of a hard link. It must be there already, in this
// layer or below.
func (t *Tree) linked(path []string) (*File, error) {
	if len(path) == 0 {
		return nil, errors.New("hard link to the root directory")
	}
	target := strings.Join(path, "/")
	dir, err := t.dir(path[:len(path)-1], false, followAll)
	if err != nil {
		return nil, fmt.Errorf("hard link to %q: %w", target, err)
	}
	n := dir.Children[path[len(path)-1]]
	switch {
	case n == nil:
		return nil, fmt.Errorf("hard link to %q: %w", target, fs.ErrNotExist)
	case n.isDir():
		return nil, fmt.Errorf("hard link to %q, which is a directory", target)
	}
	return n.File, nil
}

// walk calls fn for everything below the root, each directory before its
// children, sorted. When fn returns fs.SkipDir for a directory, its children
// are left out.
func (t *Tree) walk(fn func(name string, n *Node) error) error { return walkNode("", t.Root, fn) }

func walkNode(prefix string, dir *Node, fn func(string, *Node) error) error {
	for _, base := range dir.names() {
		n := dir.Children[base]
		name := prefix + base
		err := fn(name, n)
		if err == nil && n.isDir() {
			err = walkNode(name+"/", n, fn)
		}
		if err != nil && !errors.Is(err, fs.SkipDir) {
			return err
		}
	}
	return nil
}

// Size is how many bytes all files of the tree hold.
func (t *Tree) Size() (n int64) {
	seen := map[*File]bool{}
	_ = t.walk(func(_ string, e *Node) error {
		if !seen[e.File] {
			seen[e.File] = true
			n += e.Size
		}
		return nil
	})
	return n
}
