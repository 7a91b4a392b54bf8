package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/mistake"
)

// API is the REST API of a running server.
type API interface {
	// Nodes returns all nodes of the farm.
	Nodes(ctx context.Context) ([]pools.NodeInfo, error)
	// ChangeNodes stores changes, all or none. It fails when a node has changed
	// since the comparison.
	ChangeNodes(ctx context.Context, changes []pools.NodeChange) error
}

// Target is the destination of imported nodes: a running server, a file, or YAML on
// standard output.
type Target struct {
	Pool   string   // of new nodes
	Tags   []string // of the nodes, after those of the pool
	Config string   // a config file to compare with; empty: none
	Output string   // a file of nodes to compare with and to write; empty: none
	Apply  bool     // store the nodes over API
	DryRun bool     // only compare
	API    API
}

// check returns an error for missing fields and for fields that exclude each other.
func (t *Target) check() error {
	switch {
	case t.Pool == "":
		return errors.New("--pool is missing: which pool do the nodes belong to?")
	case t.Apply && (t.Output != "" || t.Config != ""):
		return errors.New("--apply writes to the server: give neither --output nor --config")
	}
	return nil
}

// UsageError is an error of what an import was told to do: nothing was asked, and nothing is
// changed.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// usage makes an error one of usage, unless a file cannot be read or is invalid.
func usage(err error) error {
	_, invalid := errors.AsType[mistake.Errors](err)
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable || invalid {
		return err
	}
	return &UsageError{err}
}

// Result is the outcome of an import.
type Result struct {
	Reports   []Report
	Done      int     // number of chassis that were read, and stored unless it is a dry run
	Failed    []error // the errors of the other chassis
	Partial   bool    // a node could not be imported yet
	Conflicts int

	target  *Target
	nodes   []pools.NodeInfo // stored, as the import changes them
	touched map[string]bool  // names of imported nodes
}

// Report is the outcome for one chassis.
type Report struct {
	Chassis string   `json:"chassis"`
	Changes []Change `json:"changes"`
	Notes   []string `json:"notes,omitempty"`
}

// open reads the stored nodes.
func (t *Target) open(ctx context.Context) (r *Result, err error) {
	r = &Result{target: t, touched: map[string]bool{}}
	switch {
	case t.Apply:
		r.nodes, err = t.API.Nodes(ctx)
	case t.Config != "":
		farm, err := config.Load(t.Config)
		if err != nil {
			return nil, err
		}
		r.nodes = farm.Nodes()
	case t.Output != "":
		r.nodes, err = readNodes(t.Output)
	}
	return r, err
}

// stored returns the nodes to compare with. With Apply, nodes of the server's config
// file are fixed.
func (r *Result) stored() Stored {
	out := Stored{Nodes: r.nodes}
	if r.target.Apply {
		out.Fixed = DeclaredElsewhere
	}
	return out
}

// add stores the changes of one chassis, and reports them.
func (r *Result) add(ctx context.Context, chassis string, changes []Change, notes []string) error {
	if writes := NodeChanges(changes); r.target.Apply && !r.target.DryRun && len(writes) > 0 {
		if err := r.target.API.ChangeNodes(ctx, writes); err != nil {
			return err
		}
	}
	for _, c := range changes {
		r.touched[c.Name] = true
		switch c.Kind {
		case Conflict:
			r.Conflicts++
		case Incomplete:
			r.Partial = true
		}
		if c.New == nil {
			continue
		}
		i := slices.IndexFunc(r.nodes, func(n pools.NodeInfo) bool { return n.Name == c.Name })
		if i < 0 {
			r.nodes = append(r.nodes, pools.NodeInfo{PoolNode: *c.New})
		} else {
			r.nodes[i].PoolNode = *c.New
		}
	}
	r.Reports = append(r.Reports, Report{chassis, changes, notes})
	return nil
}

// fail records that one chassis was not imported.
func (r *Result) fail(name string, err error) {
	r.Failed = append(r.Failed, fmt.Errorf("%s: %w", name, err))
}

// WriteNodes writes the nodes as YAML, to the target's file, which keeps its other
// nodes, or to w. With Apply, DryRun or without any report it writes nothing.
func (r *Result) WriteNodes(w io.Writer) error {
	t := r.target
	switch {
	case t.Apply || t.DryRun || len(r.Reports) == 0:
		return nil
	case t.Output == "":
		return writeNodes(w, slices.DeleteFunc(slices.Clone(r.nodes), func(n pools.NodeInfo) bool { return !r.touched[n.Name] }))
	}
	var b bytes.Buffer
	if err := writeNodes(&b, r.nodes); err != nil {
		return err
	}
	return atomicfile.Rewrite(t.Output, b.Bytes(), 0o644)
}

// Summary returns the report as one line: "m1: 45 nodes: 3 new, 42 same".
func (r Report) Summary() string {
	n := map[Kind]int{}
	for _, c := range r.Changes {
		n[c.Kind]++
	}
	var words []string
	for _, k := range []Kind{New, Changed, Same, Missing, Incomplete, Conflict} {
		if n[k] > 0 {
			words = append(words, fmt.Sprintf("%d %s", n[k], k))
		}
	}
	if len(words) == 0 {
		words = []string{"none"}
	}
	return fmt.Sprintf("%s: %d nodes: %s", r.Chassis, len(r.Changes), strings.Join(words, ", "))
}

// String returns the change as one line: "~ m1c3n1  macs [...] -> [...]".
func (c Change) String() string {
	text := c.Why
	if c.Kind == New || c.Kind == Same {
		macs := make([]string, len(c.New.MACs))
		for i, m := range c.New.MACs {
			macs[i] = m.String()
		}
		text = strings.Join(macs, ",")
		if c.New.IP.IsValid() {
			text += "  " + c.New.IP.String()
		}
	}
	return c.Kind.Mark() + " " + c.Name + "  " + text
}
