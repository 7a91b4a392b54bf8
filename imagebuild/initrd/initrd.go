// Package initrd writes the early user space of a node: a compressed cpio archive
// with /init, kernel modules and the firmware that they ask for.
//
// [New] chooses the modules of a kernel by the files that depmod made:
// [DefaultModules], more that the caller names, and all that they depend on. Write
// compresses the archive with the program zstd, or with a library where it is not
// installed. Equal trees give equal bytes.
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

// initrd is the early user space: /init, modules, and the firmware that they
// ask for.
type initrd struct {
	tree    *rootfs.Tree
	modules *moduleSet
	init    []byte
	dirs    map[string]bool // written already
	cpio    *cpioWriter
}

// New chooses the modules of a kernel for the initrd of a tree:
// [DefaultModules], and more, which must be there. Init is the program for /init.
func New(t *rootfs.Tree, version string, more []string, init []byte) (*initrd, error) {
	modules, err := newModuleSet(t, version)
	if err != nil {
		return nil, err
	}
	if err := modules.choose(DefaultModules(), append(essentialModules(), more...)); err != nil {
		return nil, err
	}
	return &initrd{tree: t, modules: modules, init: init}, nil
}

// Write writes the archive, compressed by the program zstd; empty: by the library.
func (i *initrd) Write(ctx context.Context, zstd string, w io.Writer) error {
	return compressInitrd(ctx, zstd, w, i.archive)
}

// archive writes the archive as it is.
func (i *initrd) archive(w io.Writer) error {
	// The modules are read piece by piece: a program at the other end is not to
	// be woken for each.
	b := bufio.NewWriterSize(w, 1<<20)
	i.cpio, i.dirs = &cpioWriter{w: b}, map[string]bool{}
	for _, dir := range []string{"dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr/lib"} {
		i.mkdir(dir)
	}
	i.cpio.link("lib", "usr/lib")
	// The kernel opens /dev/console for the first process before that can
	// mount anything. Without it, init has no standard output.
	i.cpio.char("dev/console", 0o600, 5, 1)
	i.cpio.char("dev/null", 0o666, 1, 3)
	i.cpio.file("init", 0o755, i.init)
	if err := i.writeModules(); err != nil {
		return err
	}
	if err := i.cpio.close(); err != nil {
		return err
	}
	return b.Flush()
}

func (i *initrd) writeModules() error {
	s := i.modules
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
		i.file(base+plainName(file), content)
	}
	i.file(base+"modules.dep", s.depFile())
	for _, name := range []string{"modules.alias", "modules.softdep"} {
		content, err := s.filtered(name)
		if err != nil {
			return err
		}
		i.file(base+name, content)
	}
	builtin, err := s.read("modules.builtin", maxModule)
	if err != nil {
		return err
	}
	i.file(base+"modules.builtin", builtin)
	return i.writeFirmware(needed)
}

// writeFirmware adds the firmware that the modules may ask for, as far as the
// image has it: most of it is in packages of its own.
func (i *initrd) writeFirmware(names map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		elems, err := rootfs.CleanPath(name)
		if err != nil {
			continue
		}
		for _, ext := range []string{"", ".xz", ".zst"} {
			file := path.Join("usr/lib/firmware", path.Join(elems...)) + ext
			n := i.tree.Lookup(file)
			if n == nil {
				n = i.tree.Lookup(strings.TrimPrefix(file, "usr/"))
			}
			if n == nil || n.Kind != tar.TypeReg || n.Size > maxModule {
				continue
			}
			var b bytes.Buffer
			if err := rootfs.CopyFile(&b, n.File, func(int64) {}); err != nil {
				return fmt.Errorf("%q: %w", file, err)
			}
			i.file(file, b.Bytes())
			break
		}
	}
	return nil
}

// file writes a file and the directories that lead to it.
func (i *initrd) file(name string, content []byte) {
	i.mkdir(path.Dir(name))
	i.cpio.file(name, 0o644, content)
}

func (i *initrd) mkdir(name string) {
	if name == "." || i.dirs[name] {
		return
	}
	i.mkdir(path.Dir(name))
	i.dirs[name] = true
	i.cpio.dir(name)
}

// depFile is modules.dep for the chosen modules.
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

// filtered returns those lines of modules.alias or modules.softdep that speak
// of chosen modules. An initrd that knows aliases of modules that it does not
// have would try to load them.
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
