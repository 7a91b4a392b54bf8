package main

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

	"drover/pools/atomicfile"
)

// loaderInfo is a file of the directory of loaders.
type loaderInfo struct {
	File     string   `json:"file"`
	Firmware []string `json:"firmware,omitempty"`
	Version  string   `json:"version,omitempty"`
	Signed   bool     `json:"signed"`
	Size     int64    `json:"size"`
	SHA256   string   `json:"sha256"`
	Source   string   `json:"source,omitempty"` // where install took it from
}

// action is what install did, or would do, with a loader.
type action string

const (
	actionInstalled action = "installed"
	actionReplaced  action = "replaced"
	actionUnchanged action = "unchanged"
	actionKept      action = "kept, it is not ours"
	actionMissing   action = "missing"
)

// installed is what became of a loader.
type installed struct {
	loaderInfo
	Action  action `json:"action"`
	Package string `json:"package"`

	program *program
}

// installer copies loaders from below one directory into another.
type installer struct {
	from, dir     string
	dryRun, force bool
}

// install finds and checks all loaders, then puts them in place. Nothing is
// changed when one of them is not what it should be.
func (in *installer) install(ctx context.Context) ([]installed, error) {
	root, err := os.OpenRoot(in.from)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	notes, err := readNotes(in.dir)
	if err != nil {
		return nil, err
	}
	var out []installed
	var errs []error
	for _, l := range knownLoaders() {
		i, err := in.find(ctx, root, l)
		in.decide(&i, notes)
		errs = append(errs, err)
		out = append(out, i)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if in.dryRun || !slices.ContainsFunc(out, func(i installed) bool { return i.program != nil }) {
		return out, nil
	}
	return out, in.place(out, notes)
}

// find looks for a loader and reads it.
func (in *installer) find(ctx context.Context, root *os.Root, l loader) (installed, error) {
	i := installed{loaderInfo: loaderInfo{File: l.file, Firmware: l.firmware}, Action: actionMissing, Package: l.pkg}
	for _, name := range append(slices.Clone(l.paths), l.file) {
		f, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		where := filepath.Join(in.from, name)
		if err != nil {
			return i, fmt.Errorf("%s: %w", where, err)
		}
		p, err := readProgram(f)
		f.Close()
		if err == nil {
			err = l.fits(p)
		}
		if err != nil {
			return i, fmt.Errorf("%s: for %s: %w", where, l.file, err)
		}
		i.program = p
		i.Version, i.Signed, i.Size, i.SHA256, i.Source = p.version, p.signed, p.size, p.sha256, where
		if in.from == "/" {
			in.askPackage(ctx, &i)
		}
		return i, nil
	}
	return i, nil
}

// askPackage asks dpkg whose a file is, and of what version. Without dpkg, or
// when the file is nobody's, its path has to do.
func (in *installer) askPackage(ctx context.Context, i *installed) {
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

// decide compares with what is in place.
func (in *installer) decide(i *installed, notes map[string]note) {
	if i.program == nil {
		return
	}
	noted := notes[i.File]
	old, err := openLoader(in.dir, i.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		i.Action = actionInstalled
	case err == nil && old.sha256 == i.SHA256:
		i.Action = actionUnchanged
		if noted.SHA256 == i.SHA256 {
			i.Version, i.Source = noted.Version, noted.Source
		}
	case !in.force && (err != nil || noted.SHA256 != old.sha256):
		i.Action = actionKept
	default:
		i.Action = actionReplaced
	}
}

// openLoaders opens the directory of loaders, or says how to get one.
func openLoaders(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: \"drover loaders install\" makes and fills it; or name another with --loaders", err)
	}
	return root, err
}

// openLoader reads a loader that is in place.
func openLoader(dir, name string) (*program, error) {
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

// place writes what is to be written, and notes it.
func (in *installer) place(list []installed, notes map[string]note) error {
	if err := os.MkdirAll(in.dir, 0o755); err != nil {
		return err
	}
	for _, i := range list {
		switch i.Action {
		case actionInstalled, actionReplaced:
			if err := atomicfile.Write(filepath.Join(in.dir, i.File), i.program.content, 0o644); err != nil {
				return err
			}
			fallthrough
		case actionUnchanged:
			notes[i.File] = note{i.SHA256, i.Version, i.Source}
		}
	}
	return writeNotes(in.dir, notes)
}

// notesFile is where install notes what it put there.
const notesFile = ".installed.json"

// note is what install noted of a file.
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

// listLoaders reads the directory of loaders. A file that cannot be one is an
// error, but not the end of the others.
func listLoaders(dir string) ([]loaderInfo, error) {
	root, err := openLoaders(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	notes, err := readNotes(dir)
	if err != nil {
		return nil, err
	}
	list, errs := []loaderInfo{}, []error{}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		p, err := openLoader(dir, name)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		list = append(list, describe(name, p, notes[name]))
		return nil
	})
	return list, errors.Join(append(errs, err)...)
}

// describe puts together what is known of a file in place.
func describe(name string, p *program, n note) loaderInfo {
	info := loaderInfo{File: name, Version: p.version, Signed: p.signed, Size: p.size, SHA256: p.sha256}
	if l, ok := knownLoader(name); ok {
		info.Firmware = l.firmware
	}
	switch n.SHA256 {
	case p.sha256:
		info.Version, info.Source = n.Version, n.Source
	case "":
	default:
		info.Source = "changed since it was installed"
	}
	return info
}
