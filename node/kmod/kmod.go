// Package kmod loads kernel modules with the modules that they depend on, as
// modprobe does, from the text files of depmod.
//
//	m, err := kmod.Open(dir)
//	err = m.Load("fs-squashfs")         // a name or an alias
//	loaded, errs := m.Coldplug("/sys")  // for all devices that the kernel has found
//
// An initramfs has no modprobe. The package knows nothing of the boot, nor of the source
// of [Args].
package kmod

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Modules are the modules of one directory, by depmod's files modules.dep,
// modules.alias, modules.softdep and modules.builtin. A zero Modules with an Insert func
// has no module.
type Modules struct {
	Dir    string                        // base of the paths in modules.dep
	Args   Args                          // from the kernel command line
	Insert func(file, args string) error // finit_module(2); a loaded module is no error
	files  map[string]moduleFile         // by name
	alias  map[string][]moduleAlias      // by the first aliasKey bytes of the pattern, see aliasIndex
	soft   map[string]softDeps           // by name
	built  map[string]bool               // names of the modules built into the kernel
	state  map[string]error              // the result of each module that was tried
	order  []string                      // the inserted modules, in order
}

type moduleFile struct {
	path string
	deps []string // names, in the order of modules.dep: the last must be loaded first
}

type moduleAlias struct {
	pattern, name string
}

type softDeps struct {
	pre, post []string
}

// ErrNotFound is the error for a name that is no module, no alias and not built into the
// kernel.
var ErrNotFound = errors.New("no such module")

// Dir returns the directory of the modules of a kernel release below root: lib/modules,
// or usr/lib/modules.
func Dir(root, release string) (string, error) {
	var others []string
	for _, base := range []string{"lib/modules", "usr/lib/modules"} {
		dir := filepath.Join(root, base, release)
		if _, err := os.Stat(filepath.Join(dir, "modules.dep")); err == nil {
			return dir, nil
		}
		entries, _ := os.ReadDir(filepath.Join(root, base))
		for _, e := range entries {
			others = append(others, e.Name())
		}
	}
	if len(others) > 0 {
		return "", fmt.Errorf("the initrd has modules for kernel %s, but this is kernel %s", strings.Join(others, ", "), release)
	}
	return "", fmt.Errorf("the initrd has no modules for kernel %s", release)
}

// Open reads depmod's files in dir. Only modules.dep must exist.
func Open(dir string) (*Modules, error) {
	m := &Modules{Dir: dir, Insert: Insert}
	for _, f := range []struct {
		name string
		read func(io.Reader) error
		must bool
	}{
		{"modules.dep", m.readDeps, true},
		{"modules.alias", m.readAliases, false},
		{"modules.softdep", m.readSoftDeps, false},
		{"modules.builtin", m.readBuiltin, false},
	} {
		file, err := os.Open(filepath.Join(dir, f.name))
		if errors.Is(err, fs.ErrNotExist) && !f.must {
			continue
		}
		if err != nil {
			return nil, err
		}
		err = f.read(file)
		_ = file.Close() // opened for reading
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	return m, nil
}

// Name returns the kernel's name for a module file.
func Name(file string) string {
	name := path.Base(file)
	if i := strings.Index(name, ".ko"); i > 0 {
		name = name[:i] // .ko, .ko.xz, .ko.zst
	}
	return strings.ReplaceAll(name, "-", "_")
}

// readDeps reads lines such as
//
//	kernel/drivers/net/virtio_net.ko: kernel/net/core/failover.ko kernel/drivers/virtio/virtio.ko
func (m *Modules) readDeps(r io.Reader) error {
	m.files = map[string]moduleFile{}
	return eachLine(r, func(line string) {
		file, deps, ok := strings.Cut(line, ":")
		if !ok || !filepath.IsLocal(file) {
			return // depmod writes no absolute path, and none that leaves the directory
		}
		f := moduleFile{path: file}
		for d := range strings.FieldsSeq(deps) {
			f.deps = append(f.deps, Name(d))
		}
		m.files[Name(file)] = f
	})
}

// readAliases reads lines such as
//
//	alias pci:v00001AF4d*sv*sd*bc*sc*i* virtio_pci
func (m *Modules) readAliases(r io.Reader) error {
	m.alias = map[string][]moduleAlias{}
	return eachLine(r, func(line string) {
		if w := strings.Fields(line); len(w) == 3 && w[0] == "alias" {
			a := moduleAlias{pattern: aliasName(w[1]), name: Name(w[2])}
			key := aliasIndex(a.pattern)
			m.alias[key] = append(m.alias[key], a)
		}
	})
}

// readSoftDeps reads lines such as
//
//	softdep btrfs pre: crc32c xxhash64 post: foo
func (m *Modules) readSoftDeps(r io.Reader) error {
	m.soft = map[string]softDeps{}
	return eachLine(r, func(line string) {
		w := strings.Fields(line)
		if len(w) < 3 || w[0] != "softdep" {
			return
		}
		s := m.soft[Name(w[1])]
		into := &s.pre
		for _, d := range w[2:] {
			switch d {
			case "pre:":
				into = &s.pre
			case "post:":
				into = &s.post
			default:
				*into = append(*into, d)
			}
		}
		m.soft[Name(w[1])] = s
	})
}

func (m *Modules) readBuiltin(r io.Reader) error {
	m.built = map[string]bool{}
	return eachLine(r, func(line string) { m.built[Name(strings.TrimSpace(line))] = true })
}

// eachLine calls f for each line that is neither empty nor a comment.
func eachLine(r io.Reader, f func(string)) error {
	s := bufio.NewScanner(r)
	// The longest line of Debian's modules.dep has 3 kB.
	s.Buffer(make([]byte, 0, 64<<10), 1<<20)
	for s.Scan() {
		if line := s.Text(); line != "" && line[0] != '#' {
			f(line)
		}
	}
	return s.Err()
}

// Load loads a module by its name or by an alias such as "fs-squashfs".
func (m *Modules) Load(name string) error {
	name = aliasName(name)
	if _, ok := m.files[name]; ok {
		return m.insert(name)
	}
	if m.built[name] {
		return nil
	}
	names := m.match(name)
	if len(names) == 0 {
		return fmt.Errorf("%q: %w", name, ErrNotFound)
	}
	var errs []error
	for _, n := range names {
		errs = append(errs, m.insert(n))
	}
	return errors.Join(errs...)
}

// insert loads the dependencies of a module, then the module. It tries each once.
func (m *Modules) insert(name string) error {
	if err, tried := m.state[name]; tried {
		return err
	}
	f, ok := m.files[name]
	if !ok {
		if m.built[name] {
			return nil
		}
		return fmt.Errorf("%q: %w", name, ErrNotFound)
	}
	if m.state == nil {
		m.state = map[string]error{}
	}
	m.state[name] = nil // ends a circle of dependencies
	for _, d := range m.soft[name].pre {
		_ = m.Load(d) // a soft dependency is optional
	}
	for _, d := range slices.Backward(f.deps) {
		if err := m.insert(d); err != nil {
			m.state[name] = fmt.Errorf("module %q needs %w", name, err)
			return m.state[name]
		}
	}
	if err := m.Insert(filepath.Join(m.Dir, f.path), m.Args.Options[name]); err != nil {
		m.state[name] = fmt.Errorf("module %q: %w", name, err)
		return m.state[name]
	}
	m.order = append(m.order, name)
	for _, d := range m.soft[name].post {
		_ = m.Load(d)
	}
	return nil
}

// Insert loads a module file. It is no error if the module is loaded already, or is being
// loaded.
func Insert(file, args string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if !strings.HasSuffix(file, ".ko") {
		flags = unix.MODULE_INIT_COMPRESSED_FILE // since Linux 5.17, with MODULE_DECOMPRESS
	}
	if err := unix.FinitModule(int(f.Fd()), args, flags); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// Loaded returns the names of the modules that were inserted, in order.
func (m *Modules) Loaded() []string { return slices.Clone(m.order) }
