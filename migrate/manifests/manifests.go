// Package manifests writes the config that an import has made as objects of an admin cluster.
//
// What a file of objects has already stays as it is, but for machines: as in a config, only
// they follow the import. The section server of the config is no object; it becomes a comment.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"drover/hardware/importer"
	"drover/internal/atomicfile"
	"drover/migrate"
	"drover/pools"
	"drover/pools/config/declared"
	"drover/pools/config/decode"
	"drover/pools/config/mistake"
)

// maxFile bounds the file of objects to compare with, in bytes.
const maxFile = 64 << 20

// Result is the file of objects.
type Result struct {
	Text    []byte
	Changes []migrate.Change
	Left    mistake.Errors // elements that cannot be objects
}

// Changed reports whether the file becomes another.
func (r *Result) Changed() bool {
	return slices.ContainsFunc(r.Changes, func(c migrate.Change) bool { return c.Kind != importer.Same })
}

// Convert returns the objects of a config, as they are in a namespace. file has those to
// compare with; it may not exist, and its name may be empty.
func Convert(config []byte, namespace, file string) (*Result, error) {
	var cfg pools.Config
	if _, errs := decode.YAML("the config", config, &cfg); len(errs) > 0 { // without defaults
		return nil, errs.Err()
	}
	old, err := read(file)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	all, left := declared.FromConfig(&cfg)
	r.Left = left
	all = r.merge(old, all)
	var b bytes.Buffer
	b.WriteString(head(config))
	if err := declared.Write(&b, namespace, all); err != nil {
		return nil, err
	}
	r.Text = b.Bytes()
	return r, nil
}

// read reads a file of objects.
func read(file string) ([]*declared.Object, error) {
	if file == "" {
		return nil, nil
	}
	data, err := atomicfile.Read(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := declared.Read(file, data)
	if err != nil {
		return nil, fmt.Errorf("%w (give another --output)", err)
	}
	return all, nil
}

// merge adds objects to older ones.
func (r *Result) merge(old, all []*declared.Object) []*declared.Object {
	out := slices.Clone(old)
	for _, o := range all {
		i := slices.IndexFunc(out, func(before *declared.Object) bool { return before.Key == o.Key })
		c := migrate.Change{Kind: importer.Same, Part: strings.ToLower(string(o.Kind)), Name: o.Name}
		if o.Kind == pools.KindMachine {
			c.Part = "node"
		}
		switch {
		case i < 0:
			c.Kind = importer.New
			out = append(out, o)
		case out[i].Same(o):
		case o.Kind == pools.KindMachine:
			c.Kind, out[i] = importer.Changed, o
		default:
			c.Text = "is another in the file, and stays"
		}
		r.Changes = append(r.Changes, c)
	}
	return out
}

// head returns the comments of a file of objects: those at the head of the config, and its
// section server.
func head(config []byte) string {
	var b strings.Builder
	server := false
	for line := range strings.Lines(string(config)) {
		switch {
		case strings.HasPrefix(line, "server:"):
			server = true
			b.WriteString("#\n# In the config of drover itself, not an object (values config of the chart):\n#\n")
		case server && line[0] != ' ':
			return b.String()
		case !server && line[0] != '#':
			continue
		}
		if server {
			b.WriteString("# ")
		}
		b.WriteString(line)
	}
	return b.String()
}
