// Package loaders installs and lists the boot loaders that firmware asks for: iPXE
// for each kind of firmware, shim with signed GRUB, PXELINUX and memtest.
//
// An [Installer] copies them from the packages of this host, or from a directory, into the
// directory that TFTP and HTTP serve. It checks that each is a program for its
// architecture, and records the files that it wrote, so that it keeps files of the
// operator. [List] describes the installed files.
//
// The package does not know which machine gets which loader. It verifies no signatures:
// firmware does.
package loaders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"drover/internal/atomicfile"
)

// Info describes a file in the directory of loaders.
type Info struct {
	File     string   `json:"file"`
	Firmware []string `json:"firmware,omitempty"`
	Version  string   `json:"version,omitempty"`
	Signed   bool     `json:"signed"`
	Size     int64    `json:"size"`
	SHA256   string   `json:"sha256"`
	Source   string   `json:"source,omitempty"` // the package or path that it was copied from
}

// Action is the action of Install for a loader.
type Action string

// The actions, as the output of the command shows them.
const (
	actionInstalled Action = "installed"
	actionReplaced  Action = "replaced"
	actionUnchanged Action = "unchanged"
	actionKept      Action = "kept, it is not ours"
	ActionMissing   Action = "missing"
)

// Installed is a loader and the action of Install for it.
type Installed struct {
	Info
	Action  Action `json:"action"`
	Package string `json:"package"`

	program *program
}

// Installer copies loaders from one directory tree into another directory.
type Installer struct {
	From, Dir string
	DryRun    bool // find and check the loaders, but copy nothing
	Force     bool // also replace files that Install did not write
}

// Install finds and checks all loaders, then copies them. It changes nothing when one of
// them is not a program for its firmware. The list is nil when loaders could not be read.
func (in *Installer) Install(ctx context.Context) ([]Installed, error) {
	root, err := os.OpenRoot(in.From)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	notes, err := readNotes(in.Dir)
	if err != nil {
		return nil, err
	}
	var out []Installed
	var errs []error
	for _, l := range known() {
		i, err := in.find(ctx, root, l)
		in.decide(&i, notes)
		errs = append(errs, err)
		out = append(out, i)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if in.DryRun || !slices.ContainsFunc(out, func(i Installed) bool { return i.program != nil }) {
		return out, nil
	}
	return out, in.copy(out, notes)
}

// find finds and reads a loader.
func (in *Installer) find(ctx context.Context, root *os.Root, l Loader) (Installed, error) {
	i := Installed{Info: Info{File: l.File, Firmware: l.Firmware}, Action: ActionMissing, Package: l.Package}
	for _, name := range append(slices.Clone(l.paths), l.File) {
		f, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		where := filepath.Join(in.From, name)
		if err != nil {
			return i, fmt.Errorf("%s: %w", where, err)
		}
		p, err := readProgram(f)
		f.Close()
		if err == nil {
			err = l.fits(p)
		}
		if err != nil {
			return i, fmt.Errorf("%s: for %s: %w", where, l.File, err)
		}
		p.File, p.Firmware, p.Source = l.File, l.Firmware, where
		i.Info, i.program = p.Info, p
		if in.From == "/" {
			in.askPackage(ctx, &i)
		}
		return i, nil
	}
	return i, nil
}

// askPackage sets the source to the package of the file, and the version to that of the
// package. When dpkg does not know the file, its path remains the source.
func (in *Installer) askPackage(ctx context.Context, i *Installed) {
	found, err := exec.CommandContext(ctx, "dpkg-query", "--search", i.Source).Output()
	if err != nil {
		return
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(found)), ": ") // "ipxe: /usr/…", "shim-signed:amd64: /usr/…"
	version, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${Version}", name).Output()
	if err != nil {
		return
	}
	i.Version = string(version)
	i.Source = "package " + name + ", " + i.Source
}

// decide chooses the action, by comparing the loader with the installed file.
func (in *Installer) decide(i *Installed, notes map[string]note) {
	if i.program == nil {
		return
	}
	noted := notes[i.File]
	old, err := readLoader(in.Dir, i.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		i.Action = actionInstalled
	case err == nil && old.SHA256 == i.SHA256:
		i.Action = actionUnchanged
		if noted.SHA256 == i.SHA256 {
			i.Version, i.Source = noted.Version, noted.Source
		}
	case !in.Force && (err != nil || noted.SHA256 != old.SHA256):
		i.Action = actionKept
	default:
		i.Action = actionReplaced
	}
}

// Open opens the directory of loaders. The error for a missing directory has the remedy.
func Open(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: \"drover loaders install\" makes and fills it; or name another with --loaders", err)
	}
	return root, err
}

// readLoader reads an installed loader.
func readLoader(dir, name string) (*program, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := readProgram(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return p, nil
}

// copy writes the files and their records.
func (in *Installer) copy(list []Installed, notes map[string]note) error {
	if err := os.MkdirAll(in.Dir, 0o755); err != nil {
		return err
	}
	for _, i := range list {
		switch i.Action {
		case actionInstalled, actionReplaced:
			if err := atomicfile.Write(filepath.Join(in.Dir, i.File), i.program.content, 0o644); err != nil {
				return err
			}
			fallthrough
		case actionUnchanged:
			notes[i.File] = note{i.SHA256, i.Version, i.Source}
		}
	}
	return writeNotes(in.Dir, notes)
}

// notesFile has the records of the files that Install wrote, as JSON, by file name.
const notesFile = ".installed.json"

// note is the record of a file that Install wrote.
type note struct {
	SHA256  string `json:"sha256"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source"`
}

func readNotes(dir string) (map[string]note, error) {
	notes := map[string]note{}
	b, err := os.ReadFile(filepath.Join(dir, notesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return notes, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &notes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, notesFile), err)
	}
	return notes, nil
}

func writeNotes(dir string, notes map[string]note) error {
	b, err := json.MarshalIndent(notes, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, notesFile), append(b, '\n'), 0o644)
}

// List returns the files in the directory of loaders. The error names the files that
// cannot be loaders; the list then has the others.
func List(dir string) ([]Info, error) {
	root, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	notes, err := readNotes(dir)
	if err != nil {
		return nil, err
	}
	list, errs := []Info{}, []error{}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		p, err := readLoader(dir, name)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		list = append(list, describe(name, p, notes[name]))
		return nil
	})
	return list, errors.Join(append(errs, err)...)
}

// describe returns the description of an installed file.
func describe(name string, p *program, n note) Info {
	info := p.Info
	info.File = name
	if l, ok := Find(name); ok {
		info.Firmware = l.Firmware
	}
	switch n.SHA256 {
	case p.SHA256:
		info.Version, info.Source = n.Version, n.Source
	case "":
	default:
		info.Source = "changed since it was installed"
	}
	return info
}
