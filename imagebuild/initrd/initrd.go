// Package initrd writes the early user space of a node: a compressed cpio archive with
// /init, kernel modules and the firmware that they load.
//
// [New] chooses the modules of a kernel: [DefaultModules], the modules that the caller
// names, and their dependencies as depmod found them. [Archive.Write] compresses the
// archive with the program zstd, or with a library where zstd is not installed. Equal
// trees give equal bytes.
//
// The package does not know what /init does.
package initrd

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"drover/imagebuild/rootfs"
)

// Archive is the early user space: /init, modules, and the firmware that they load.
type Archive struct {
	tree    *rootfs.Tree
	modules *moduleSet
	init    []byte
	dirs    map[string]bool // directories that were written
	cpio    *cpioWriter
}

// New returns the initrd for a kernel of a tree. It contains [DefaultModules], and more,
// which must exist. Init is the program for /init.
func New(t *rootfs.Tree, version string, more []string, init []byte) (*Archive, error) {
	modules, err := newModuleSet(t, version)
	if err != nil {
		return nil, err
	}
	if err := modules.choose(DefaultModules(), append(essentialModules(), more...)); err != nil {
		return nil, err
	}
	return &Archive{tree: t, modules: modules, init: init}, nil
}

// Write writes the compressed archive. Zstd is the path of the program that compresses
// it; when it is empty, the library does.
func (a *Archive) Write(ctx context.Context, zstd string, w io.Writer) error {
	return compress(ctx, zstd, w, a.archive)
}

// archive writes the archive, not compressed.
func (a *Archive) archive(w io.Writer) error {
	// A large buffer: each write wakes the program at the other end.
	b := bufio.NewWriterSize(w, 1<<20)
	a.cpio, a.dirs = &cpioWriter{w: b}, map[string]bool{}
	for _, dir := range []string{"dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr/lib"} {
		a.mkdir(dir)
	}
	a.cpio.link("lib", "usr/lib")
	// The kernel opens /dev/console for the first process before that process can
	// mount anything. Without it, init has no standard output.
	a.cpio.char("dev/console", 0o600, 5, 1)
	a.cpio.char("dev/null", 0o666, 1, 3)
	a.cpio.file("init", 0o755, a.init)
	if err := a.writeModules(); err != nil {
		return err
	}
	if err := a.cpio.close(); err != nil {
		return err
	}
	return b.Flush()
}

func (a *Archive) writeModules() error {
	s := a.modules
	base := "usr/lib/modules/" + s.version + "/"
	needed := map[string]bool{}
	for _, file := range s.files() {
		content, err := s.module(file)
		if err != nil {
			return err
		}
		for _, name := range Firmware(content) {
			needed[name] = true
		}
		a.file(base+plainName(file), content)
	}
	a.file(base+"modules.dep", s.depFile())
	for _, name := range []string{"modules.alias", "modules.softdep"} {
		content, err := s.filtered(name)
		if err != nil {
			return err
		}
		a.file(base+name, content)
	}
	builtin, err := s.read("modules.builtin", maxModule)
	if err != nil {
		return err
	}
	a.file(base+"modules.builtin", builtin)
	return a.writeFirmware(needed)
}

// writeFirmware writes the firmware that the modules may load. Distributions keep most
// firmware in separate packages, so a missing file is no error.
func (a *Archive) writeFirmware(names map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		elems, err := rootfs.CleanPath(name)
		if err != nil {
			continue
		}
		for _, ext := range []string{"", ".xz", ".zst"} {
			file := path.Join("usr/lib/firmware", path.Join(elems...)) + ext
			n := a.tree.Lookup(file)
			if n == nil {
				n = a.tree.Lookup(strings.TrimPrefix(file, "usr/"))
			}
			if n == nil || n.Kind != tar.TypeReg || n.Size > maxModule {
				continue
			}
			content, err := n.Content()
			if err != nil {
				return fmt.Errorf("%q: %w", file, err)
			}
			a.file(file, content)
			break
		}
	}
	return nil
}

// file writes a file and its directories.
func (a *Archive) file(name string, content []byte) {
	a.mkdir(path.Dir(name))
	a.cpio.file(name, 0o644, content)
}

func (a *Archive) mkdir(name string) {
	if name == "." || a.dirs[name] {
		return
	}
	a.mkdir(path.Dir(name))
	a.dirs[name] = true
	a.cpio.dir(name)
}

// depFile returns modules.dep for the chosen modules.
func (s *moduleSet) depFile() []byte {
	var b bytes.Buffer
	for _, file := range s.files() {
		b.WriteString(plainName(file) + ":")
		for _, dep := range s.deps[file] {
			b.WriteString(" " + plainName(dep))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// filtered returns the lines of modules.alias or modules.softdep for chosen modules. With
// all lines, the initrd would try to load modules that it does not have.
func (s *moduleSet) filtered(name string) ([]byte, error) {
	var b bytes.Buffer
	err := s.lines(name, func(line string) {
		fields := strings.Fields(line)
		var module string
		switch {
		case len(fields) == 3 && fields[0] == "alias":
			module = fields[2]
		case len(fields) > 2 && fields[0] == "softdep":
			module = fields[1]
		}
		if s.chosen[s.byName[normalName(module)]] {
			b.WriteString(line + "\n")
		}
	})
	return b.Bytes(), err
}
