// Package initrd writes the early user space of a node: a compressed cpio archive with
// /init, kernel modules and the firmware that they load.
//
// [New] chooses the modules of a kernel: [DefaultModules], the modules that the caller
// names, and their dependencies as depmod found them. [Archive.WriteContents] writes the
// archive as it is, and [Archive.Write] the initrd: processor microcode, the compressed
// archive, and archives of the operator's own. Equal trees give equal bytes, on all hosts.
//
// The package does not know what /init does.
package initrd

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"drover/imagebuild/rootfs"
)

// Config describes an initrd.
type Config struct {
	Arch      string    // the processor, such as amd64
	Init      []byte    // the program for /init
	Modules   []string  // more modules, besides [DefaultModules]; they must exist
	Own       Own       // files and archives of the operator's own
	Microcode Microcode // zero: auto
}

// Archive is the early user space: /init, modules, and the firmware that they load.
type Archive struct {
	Config
	Missing []Missing // drivers without their firmware, once WriteContents has returned
	Left    []string  // models of processors whose microcode was left out

	tree      *rootfs.Tree
	modules   *moduleSet
	leftOut   []Missing
	microcode map[string][]byte // by path
	dirs      map[string]bool   // directories that were written
	cpio      *cpioWriter
}

// New returns the initrd for a kernel of a tree.
func New(t *rootfs.Tree, version string, c Config) (*Archive, error) {
	modules, err := newModuleSet(t, version)
	if err != nil {
		return nil, err
	}
	a := &Archive{Config: c, tree: t, modules: modules}
	if err := a.choose(); err != nil {
		return nil, err
	}
	a.microcode, a.Left, err = c.Microcode.microcode(t)
	return a, err
}

// Key returns a name for the bytes that Write writes, given the SHA-256 of the contents.
func (a *Archive) Key(contents []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%x\n", compressor, contents)
	for _, name := range slices.Sorted(maps.Keys(a.microcode)) {
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(a.microcode[name]))
	}
	for _, archive := range a.Own.archives {
		fmt.Fprintf(h, "%x\n", sha256.Sum256(archive))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Write writes the initrd. Contents is what WriteContents wrote.
func (a *Archive) Write(w io.Writer, contents io.Reader) error {
	out := &cpioWriter{w: w}
	if len(a.microcode) > 0 {
		for _, dir := range []string{"kernel", "kernel/x86", "kernel/x86/microcode"} {
			out.dir(dir)
		}
		for _, name := range slices.Sorted(maps.Keys(a.microcode)) {
			out.aligned(name, a.microcode[name])
		}
		if err := out.close(); err != nil {
			return err
		}
	}
	if err := compress(out, contents); err != nil {
		return err
	}
	for _, archive := range a.Own.archives {
		out.pad(cpioBlock) // the kernel skips zeros between archives
		out.write(archive)
	}
	return out.err
}

// WriteContents writes the archive, not compressed, and finds what is missing.
func (a *Archive) WriteContents(w io.Writer) error {
	// A large buffer: each write is a system call.
	b := bufio.NewWriterSize(w, 1<<20)
	a.cpio, a.dirs, a.Missing = &cpioWriter{w: b}, map[string]bool{}, slices.Clone(a.leftOut)
	for _, dir := range []string{"dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr/lib"} {
		a.mkdir(dir)
	}
	a.cpio.link("lib", "usr/lib")
	// The kernel opens /dev/console for the first process before that process can
	// mount anything. Without it, init has no standard output.
	a.cpio.char("dev/console", 0o600, 5, 1)
	a.cpio.char("dev/null", 0o666, 1, 3)
	a.cpio.file("init", 0o755, a.Init)
	if err := a.writeModules(); err != nil {
		return err
	}
	for _, f := range a.Own.files {
		a.mkdir(path.Dir(f.path))
		a.cpio.file(f.path, f.mode, f.content)
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
		m, err := s.module(file)
		if err != nil {
			return err
		}
		names := Firmware(m.plain)
		for _, name := range names {
			needed[name] = true
		}
		if isNICDriver(file) {
			if m := a.missing(moduleName(file), names); len(m.Files) > 0 {
				a.Missing = append(a.Missing, m)
			}
		}
		a.file(base+m.path, m.content)
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
		file, f := firmware(a.tree, a.modules.version, name)
		if f == nil {
			continue
		}
		content, err := f.Content()
		if err != nil {
			return fmt.Errorf("%q: %w", file, err)
		}
		a.file(file, content)
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
		b.WriteString(s.stored(file) + ":")
		for _, dep := range s.deps[file] {
			b.WriteString(" " + s.stored(dep))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// filtered returns the lines of modules.alias or modules.softdep for chosen modules, the
// latter with those of modprobe.d. With all lines, the initrd would try to load modules
// that it does not have.
func (s *moduleSet) filtered(name string) ([]byte, error) {
	var b bytes.Buffer
	keep := func(line string) {
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
	}
	err := s.lines(name, keep)
	if name == "modules.softdep" {
		for _, line := range s.configured {
			keep(line)
		}
	}
	return b.Bytes(), err
}
