package include

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"drover/internal/atomicfile"
	"drover/pools"
)

// read adds the files of the i-th pattern to the text, unless they are there already.
func (t *Text) read(patterns []string, i int) error {
	d, err := open(t.File, patterns[i])
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(t.Included, func(p pools.ConfigPart) bool { return p.File == name }) {
			continue
		}
		if len(t.Included) == maxFiles {
			return pools.Hint("put several into one", "more than %d files", maxFiles)
		}
		data, err := d.read(name)
		if err != nil {
			return pools.Hint("mend or remove it", "%s: %s", t.name(name), strings.TrimPrefix(cause(err), name+": "))
		}
		t.Included = append(t.Included, pools.ConfigPart{File: name, Content: string(data)})
		if size := t.size(); size > maxSize {
			return pools.Hint("10 000 machines need 2 MB", "%s: with it the config has more than %d bytes", t.name(name), maxSize)
		}
	}
	return nil
}

func (t *Text) size() int {
	n := len(t.Main)
	for _, p := range t.Included {
		n += len(p.Content)
	}
	return n
}

// cause returns an error of a file without the file's name, which is said already.
func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// dir is the directory that a pattern is looked for in.
type dir struct {
	root    *os.Root // the directory of the config file; nil for an absolute pattern
	folder  string   // relative to root, or absolute
	pattern string   // of the name in it
	self    string   // the name of the config file, if folder may be its directory
}

// wildcards make a name a pattern.
const wildcards = `*?[\`

// open opens the directory of a pattern. Relative ones stay in the directory of the config
// file, also by symbolic links.
func open(config, pattern string) (*dir, error) {
	d := &dir{folder: filepath.Dir(pattern), pattern: filepath.Base(pattern), self: filepath.Base(config)}
	_, err := filepath.Match(d.pattern, "")
	switch {
	case pattern == "" || filepath.Clean(pattern) != pattern || d.pattern == "." || d.pattern == ".." || strings.ContainsRune(pattern, 0):
		return nil, pools.Hint("write conf.d/*.yaml", "%q is not a clean path of a file", pattern)
	case strings.ContainsAny(d.folder, wildcards):
		return nil, pools.Hint("write conf.d/*.yaml", "%q: only the name of the file may be a pattern", pattern)
	case err != nil:
		return nil, pools.Hint("write conf.d/*.yaml", "%q: %v", pattern, err)
	case filepath.IsAbs(pattern):
		return d, nil
	case !filepath.IsLocal(pattern):
		return nil, pools.Hint("move the files there, or write an absolute path", "%q is not in the directory of the config file or below it", pattern)
	}
	if d.root, err = os.OpenRoot(filepath.Dir(config)); err != nil {
		return nil, fmt.Errorf("the directory of the config: %s", cause(err))
	}
	return d, nil
}

func (d *dir) Close() {
	if d.root != nil {
		_ = d.root.Close()
	}
}

// names returns the files of the pattern, sorted. A name that is no pattern is returned as
// it is. Hidden files, which editors make, are those of a pattern with a dot alone.
func (d *dir) names() (names []string, _ error) {
	if !strings.ContainsAny(d.pattern, wildcards) {
		return []string{filepath.Join(d.folder, d.pattern)}, nil
	}
	const flags = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK
	var f *os.File
	var err error
	if d.root != nil {
		f, err = d.root.OpenFile(d.folder, flags, 0)
	} else {
		f, err = os.OpenFile(d.folder, flags, 0)
	}
	if err != nil {
		return nil, pools.Hint("make the directory, or remove the pattern", "%s: %s", d.folder, cause(err))
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", d.folder, cause(err))
	}
	if len(entries) > maxEntries {
		return nil, pools.Hint("give the config a directory of its own", "%s: more than %d files", d.folder, maxEntries)
	}
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(d.pattern, ".")
		if fits, _ := filepath.Match(d.pattern, e.Name()); fits && !hidden && !d.isConfig(e.Name()) {
			names = append(names, filepath.Join(d.folder, e.Name()))
		}
	}
	slices.Sort(names)
	return names, nil
}

// isConfig reports whether a name in the directory is that of the config file itself.
func (d *dir) isConfig(name string) bool { return d.root != nil && d.folder == "." && name == d.self }

func (d *dir) read(name string) ([]byte, error) {
	if d.root != nil {
		return atomicfile.ReadIn(d.root, name, maxSize)
	}
	return atomicfile.Read(name, maxSize)
}
