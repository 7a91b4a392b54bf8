package imagebuild

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

// file is an inode: everything but its names. Hard links share one.
type file struct {
	kind         byte  // a tar type: TypeReg, TypeDir, TypeSymlink, TypeChar, TypeBlock or TypeFifo
	mode         int64 // permissions with setuid, setgid and sticky
	uid, gid     int
	mtime        int64 // seconds since 1970
	major, minor int64
	target       string            // of a symbolic link
	xattrs       map[string]string // by full name, such as security.capability
	size         int64
	open         func() (io.ReadCloser, error) // the contents; nil when there are none
}

// reader opens the contents of a regular file.
func (f *file) reader() (io.ReadCloser, error) {
	if f.open == nil {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	return f.open()
}

// bytesFile is a regular file of root's that the builder itself made.
func bytesFile(content []byte, mode, mtime int64) *file {
	return &file{kind: tar.TypeReg, mode: mode, mtime: mtime, size: int64(len(content)),
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

// node is a name in the tree. Its children are nil unless it is a directory.
type node struct {
	*file
	children map[string]*node
}

func newDir(f *file) *node { return &node{file: f, children: map[string]*node{}} }

// implicitDir is a directory that no layer describes although it has files.
func implicitDir() *node { return newDir(&file{kind: tar.TypeDir, mode: 0o755}) }

func (n *node) isDir() bool { return n.kind == tar.TypeDir }

// names returns the names of the children, sorted by bytes.
func (n *node) names() []string { return slices.Sorted(maps.Keys(n.children)) }

// tree is a root file system in memory, without the contents of its files.
type tree struct{ root *node }

func newTree() *tree { return &tree{root: implicitDir()} }

// split cuts a path into its elements, without empty ones and ".".
func split(name string) []string {
	elems := strings.Split(name, "/")
	return slices.DeleteFunc(elems, func(e string) bool { return e == "" || e == "." })
}

// followFunc decides whether a path may lead through the symbolic link n,
// called name, at the given depth (0 is the root directory).
type followFunc func(depth int, name string, n *node) bool

func followAll(int, string, *node) bool { return true }

// dir resolves elems to a directory. Links never lead out of the tree: the
// root is its own parent, as in a chroot. With create, missing directories are
// made, and what is no directory gives way to one.
func (t *tree) dir(elems []string, create bool, follow followFunc) (*node, error) {
	at := []*node{t.root}
	links := 0
	for len(elems) > 0 {
		e := elems[0]
		elems = elems[1:]
		if e == ".." {
			at = at[:max(1, len(at)-1)]
			continue
		}
		here := at[len(at)-1]
		n := here.children[e]
		switch {
		case n != nil && n.isDir():
			at = append(at, n)
		case n != nil && n.kind == tar.TypeSymlink && follow(len(at)-1, e, n):
			if links++; links > maxLinks {
				return nil, fmt.Errorf("more than %d symbolic links in one path", maxLinks)
			}
			if strings.HasPrefix(n.target, "/") {
				at = at[:1]
			}
			elems = append(split(n.target), elems...)
		case create:
			n = implicitDir()
			here.children[e] = n
			at = append(at, n)
		default:
			return nil, fs.ErrNotExist
		}
	}
	return at[len(at)-1], nil
}

// lookup finds name, following links in its directories and, up to the usual
// number of times, at its end. It returns nil when there is no such file.
func (t *tree) lookup(name string) *node {
	for range maxLinks {
		elems := split(name)
		if len(elems) == 0 {
			return t.root
		}
		dir, err := t.dir(elems[:len(elems)-1], false, followAll)
		if err != nil {
			return nil
		}
		n := dir.children[elems[len(elems)-1]]
		if n == nil || n.kind != tar.TypeSymlink {
			return n
		}
		name = n.target
		if !strings.HasPrefix(name, "/") {
			name = strings.Join(elems[:len(elems)-1], "/") + "/" + n.target
		}
	}
	return nil
}

// put adds one file of a layer on top of what is there.
func (t *tree) put(e entry) error {
	if len(e.path) == 0 {
		return t.putRoot(e)
	}
	dir, err := t.dir(e.path[:len(e.path)-1], true, followAll)
	if err != nil {
		return err
	}
	base := e.path[len(e.path)-1]
	old := dir.children[base]
	switch {
	case e.link != nil:
		f, err := t.linked(e.link)
		if err != nil {
			return err
		}
		dir.children[base] = &node{file: f}
	case e.file.kind != tar.TypeDir:
		dir.children[base] = &node{file: e.file}
	case old != nil && old.isDir():
		old.file = e.file
	case old != nil && len(e.path) == 1 && mergedUsr(0, base, old):
		_, err := t.dir(e.path, true, followAll)
		return err
	default:
		dir.children[base] = newDir(e.file)
	}
	return nil
}

// putRoot takes nothing from a layer's root entry: the root is always 0755 and
// root's, see [tree.emit]. Builders disagree about it (mode 0555, 0700, their
// own uid), and with a root directory that others cannot search, every service
// that is not root's fails.
func (t *tree) putRoot(e entry) error {
	if e.file == nil || e.file.kind != tar.TypeDir {
		return errors.New("the root is not a directory")
	}
	return nil
}

// linked finds the target of a hard link. It must be there already, in this
// layer or below.
func (t *tree) linked(path []string) (*file, error) {
	if len(path) == 0 {
		return nil, errors.New("hard link to the root directory")
	}
	target := strings.Join(path, "/")
	dir, err := t.dir(path[:len(path)-1], false, followAll)
	if err != nil {
		return nil, fmt.Errorf("hard link to %q: %w", target, err)
	}
	n := dir.children[path[len(path)-1]]
	switch {
	case n == nil:
		return nil, fmt.Errorf("hard link to %q: %w", target, fs.ErrNotExist)
	case n.isDir():
		return nil, fmt.Errorf("hard link to %q, which is a directory", target)
	}
	return n.file, nil
}

// walk calls fn for everything below the root, each directory before its
// children, sorted. When fn returns fs.SkipDir for a directory, its children
// are left out.
func (t *tree) walk(fn func(name string, n *node) error) error { return walkNode("", t.root, fn) }

func walkNode(prefix string, dir *node, fn func(string, *node) error) error {
	for _, base := range dir.names() {
		n := dir.children[base]
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
