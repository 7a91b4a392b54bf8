package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"drover/hardware/importer"
	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/include"
	"drover/pools/config/mistake"
)

// Import is an import of one format: a reader, and a destination for what it reads.
type Import struct {
	Command string            // as the operator typed it, for the head of the config
	Read    func(*Farm) error // fills the farm; an error is one of all files, such as [ErrFormat]
	Options Options

	Config string // a config file to compare with; empty: none
	Output string // the config file to write, and to compare with; empty: none
	Apply  bool   // store the nodes over API; the rest is for the server's config file
	DryRun bool   // only compare
	API    importer.API
}

// Result is the outcome of an import.
type Result struct {
	Notes   []Note   `json:"notes"`
	Changes []Change `json:"changes"`

	Conflicts  int  `json:"-"`
	Restricted bool `json:"-"` // a range is left out that would be open to more machines
	Partial    bool `json:"-"` // something was not understood, or a machine was left out

	target *Import
	text   []byte // the config
	change bool   // it differs from the file that is there
	wrong  bool   // it has mistakes
}

// maxConfig bounds the config file to compare with, in bytes.
const maxConfig = 4 << 20

// Run reads, compares, and stores the nodes when Apply says so. [Result.Write] writes the
// config.
func (i *Import) Run(ctx context.Context) (*Result, error) {
	if i.Apply && (i.Output != "" || i.Config != "") {
		return nil, &importer.UsageError{Err: errors.New("--apply writes to the server: give neither --output nor --config")}
	}
	f := NewFarm(i.Options)
	if err := i.Read(f); err != nil {
		return nil, err
	}
	old, stored, err := i.open(ctx, f)
	if err != nil {
		return nil, err
	}
	c := f.Finish()
	r := &Result{target: i}
	changes := importer.CompareNodes(nodesOf(&c), stored)
	i.accept(&c, changes)
	doc, err := f.document(c)
	if err != nil {
		return nil, err
	}
	merged, parts := into(old, doc)
	if doc, err = i.written(f, c, merged); err != nil {
		return nil, err
	}
	f.verify(doc)
	if old == nil {
		merged.HeadComment = i.head(f)
	}
	if !i.Apply {
		r.Changes = parts
	}
	r.add(changes)
	if r.text, err = render(merged); err != nil {
		return nil, err
	}
	r.Notes = f.Notes
	if !i.Apply {
		r.checked()
	} else if writes := stripped(importer.NodeChanges(changes)); !i.DryRun && len(writes) > 0 {
		if err := i.API.ChangeNodes(ctx, writes); err != nil {
			return nil, err
		}
	}
	r.count()
	return r, nil
}

// open reads what is there already. The farm gets the config.
func (i *Import) open(ctx context.Context, f *Farm) (old *yaml.Node, stored importer.Stored, err error) {
	if i.Apply {
		nodes, err := i.API.Nodes(ctx)
		return nil, importer.Stored{Nodes: nodes, Fixed: importer.DeclaredElsewhere}, err
	}
	file := i.Config
	if file == "" {
		file = i.Output
	}
	if file == "" {
		return nil, stored, nil
	}
	data, err := atomicfile.Read(file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) && i.Config == "" {
		return nil, stored, nil
	}
	if err != nil {
		return nil, stored, err
	}
	farm, err := config.ParseText(&include.Text{File: file, Main: data})
	if err != nil {
		return nil, stored, err
	}
	f.there = farm.Config
	old = &yaml.Node{}
	return old, importer.Stored{Nodes: farm.Nodes()}, yaml.Unmarshal(data, old)
}

func nodesOf(c *pools.Config) (nodes []pools.PoolNode) {
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			nodes = append(nodes, pools.PoolNode{Pool: p.Name, Node: n})
		}
	}
	return nodes
}

// accept leaves only those nodes in a config that the comparison accepts, each in the pool
// where it is already.
func (i *Import) accept(c *pools.Config, changes []importer.Change) {
	for p := range c.Pools {
		c.Pools[p].Nodes = nil
	}
	for _, ch := range changes {
		if ch.New == nil {
			continue
		}
		at := slices.IndexFunc(c.Pools, func(p pools.Pool) bool { return p.Name == ch.New.Pool })
		if at < 0 {
			at = len(c.Pools)
			c.Pools = append(c.Pools, pools.Pool{Name: ch.New.Pool})
		}
		c.Pools[at].Nodes = append(c.Pools[at].Nodes, ch.New.Node)
	}
}

// stripped returns changes without the power of nodes: it names files of the server, which
// only its config file may do.
func stripped(changes []pools.NodeChange) []pools.NodeChange {
	for i := range changes {
		changes[i].New.Power = nil
	}
	return changes
}

// written returns the part of a config that is written: with Apply the nodes.
func (i *Import) written(f *Farm, c pools.Config, doc *yaml.Node) (*yaml.Node, error) {
	if !i.Apply {
		return doc, nil
	}
	nodes := pools.Config{}
	for _, p := range c.Pools {
		nodes.Pools = append(nodes.Pools, pools.Pool{Name: p.Name, Nodes: p.Nodes})
	}
	return f.document(nodes)
}

// add adds the changes of nodes.
func (r *Result) add(changes []importer.Change) {
	for _, ch := range changes {
		_, text, _ := strings.Cut(ch.String(), ch.Name+"  ")
		r.Changes = append(r.Changes, Change{ch.Kind, "node", ch.Name, text})
	}
}

// checked notes the mistakes that the config has.
func (r *Result) checked() {
	for _, ch := range r.Changes {
		r.change = r.change || ch.Kind == importer.New || ch.Kind == importer.Changed
	}
	name := cmp.Or(r.target.Output, r.target.Config, "the config")
	_, err := config.ParseText(&include.Text{File: name, Main: r.text})
	r.wrong = err != nil
	if mistakes, ok := errors.AsType[mistake.Errors](err); ok {
		for _, m := range mistakes {
			r.Notes = append(r.Notes, Note{Origin: m.Origin, Kind: Unknown, Text: "the result has a mistake: " + m.Msg + " (" + m.Hint + ")"})
		}
	}
}

func (r *Result) count() {
	for _, n := range r.Notes {
		switch n.Kind {
		case Clash:
			r.Conflicts++
		case Restricted:
			r.Restricted = true
		case Unknown, LeftOut:
			r.Partial = true
		}
	}
	for _, ch := range r.Changes {
		switch ch.Kind {
		case importer.Conflict:
			r.Conflicts++
		case importer.Incomplete:
			r.Partial = true
		}
	}
}

// Config returns the config.
func (r *Result) Config() []byte { return r.text }

// Write writes the config to the output file, or to w. It writes nothing with Apply or
// DryRun, nor a file that would stay the same. A config with mistakes replaces no file.
func (r *Result) Write(w io.Writer) error {
	t := r.target
	switch {
	case t.Apply || t.DryRun:
		return nil
	case t.Output == "":
		_, err := w.Write(r.text)
		return err
	case !r.change:
		return nil
	}
	if _, err := os.Stat(t.Output); err == nil && r.wrong {
		return fmt.Errorf("%s stays as it is: the result has mistakes, see the report", t.Output)
	}
	return atomicfile.Rewrite(t.Output, r.text, 0o600) // it may hold the hash of a password
}

// Summary returns the outcome as one line.
func (r *Result) Summary() string {
	var nodes, notes []string // the kind of each
	for _, ch := range r.Changes {
		if ch.Part == "node" {
			nodes = append(nodes, string(ch.Kind))
		}
	}
	for _, n := range r.Notes {
		notes = append(notes, string(n.Kind))
	}
	count := func(before string, all []string, kinds ...string) (text string) {
		for _, kind := range kinds {
			if n := len(slices.DeleteFunc(slices.Clone(all), func(k string) bool { return k != kind })); n > 0 {
				text += fmt.Sprintf("%s%d %s", before, n, kind)
				before = ", "
			}
		}
		return text
	}
	return fmt.Sprintf("%d nodes", len(nodes)) +
		count(": ", nodes, string(importer.New), string(importer.Changed), string(importer.Same), string(importer.Incomplete), string(importer.Conflict)) +
		count("; options: ", notes, string(Taken), string(Itself), string(NotTaken), string(Lost), string(Bug), string(Unknown), string(LeftOut), string(Restricted), string(Clash))
}

// maxHead bounds the notes in the head of a config.
const maxHead = 100

// head returns the comment at the head of a config.
func (i *Import) head(f *Farm) string {
	lines := []string{"Made by: " + i.Command, "Lines marked CHANGE need your decision. drover check -c FILE checks the whole."}
	var open []string
	for _, n := range f.Notes {
		if n.Kind != Taken && n.Kind != Itself {
			open = append(open, n.String())
		}
	}
	if len(open) > 0 {
		lines = append(lines, "", "Not taken over as it was:")
	}
	if n := len(open) - maxHead; n > 0 {
		open = append(open[:maxHead], fmt.Sprintf("and %d more: run the import again with --dry-run to see them", n))
	}
	return commented(strings.Join(append(lines, open...), "\n"))
}
