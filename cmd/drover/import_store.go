package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"drover/cmd/drover/server"
	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/config"
	"drover/pools/ilo"
)

// importTarget says where imported nodes go: YAML on standard output, a file,
// or a running server.
type importTarget struct {
	pool   string
	tags   []string
	config string
	output string
	apply  bool
	dryRun bool
	diff   bool
	format string
	api    apiClient
}

func (t *importTarget) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.pool, "pool", "", "pool of new nodes")
	f.StringArrayVar(&t.tags, "tag", nil, "tag of the nodes, after those of the pool; once for each")
	f.StringVarP(&t.config, "config", "c", "", "compare with the nodes of this config file")
	f.StringVar(&t.output, "output", "", "write the nodes as YAML to this file, and compare with what is in it; default: standard output")
	f.BoolVar(&t.apply, "apply", false, "write the nodes to the running server, all of a chassis or none")
	f.BoolVar(&t.dryRun, "dry-run", false, "only show what would change")
	f.BoolVar(&t.diff, "diff", false, "show what changes, also when the nodes are written")
	f.StringVarP(&t.format, "format", "o", "text", "how changes are shown: text|json|yaml")
	t.api.apiFlags(cmd)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// check finds flags that do not fit together.
func (t *importTarget) check() error {
	switch {
	case t.pool == "":
		return errors.New("--pool is missing: which pool do the nodes belong to?")
	case t.apply && (t.output != "" || t.config != ""):
		return errors.New("--apply writes to the server: give neither --output nor --config")
	case t.format != "text" && t.format != "json" && t.format != "yaml":
		return fmt.Errorf("unknown output %q (text, json or yaml)", t.format)
	}
	return nil
}

// importStore is what is stored, as it changes while chassis are imported.
type importStore struct {
	target  *importTarget
	nodes   []pools.NodeInfo
	touched map[string]bool // names of nodes that were imported
	reports []importReport
}

// importReport is what happened to one chassis.
type importReport struct {
	Chassis string       `json:"chassis"`
	Changes []ilo.Change `json:"changes"`
	Notes   []string     `json:"notes,omitempty"`
}

// open reads what is stored.
func (t *importTarget) open(ctx context.Context) (*importStore, error) {
	s := &importStore{target: t, touched: map[string]bool{}}
	switch {
	case t.apply:
		return s, t.api.call(ctx, http.MethodGet, nodesPath, nil, &s.nodes)
	case t.config != "":
		farm, err := config.Load(t.config)
		if err != nil {
			return nil, usage(err)
		}
		s.nodes = farm.Nodes()
	case t.output != "":
		nodes, err := readFragment(t.output)
		if err != nil {
			return nil, usage(err)
		}
		s.nodes = nodes
	}
	return s, nil
}

// known is what changes are compared with. What the server's file declares can
// only be changed there; what is in a file that is written anew can.
func (s *importStore) known() ilo.Stored {
	out := ilo.Stored{Nodes: s.nodes}
	if s.target.apply {
		out.Fixed = server.DeclaredElsewhere
	}
	return out
}

// write takes the changes of one chassis.
func (s *importStore) write(cmd *cobra.Command, chassis string, changes []ilo.Change, notes []string) error {
	if s.target.apply && !s.target.dryRun {
		if err := applyChanges(cmd.Context(), &s.target.api, changes); err != nil {
			return err
		}
	}
	for _, c := range changes {
		s.touched[c.Name] = true
		if c.New == nil {
			continue
		}
		i := slices.IndexFunc(s.nodes, func(n pools.NodeInfo) bool { return n.Name == c.Name })
		if i < 0 {
			s.nodes = append(s.nodes, pools.NodeInfo{PoolNode: *c.New})
		} else {
			s.nodes[i].PoolNode = *c.New
		}
	}
	s.reports = append(s.reports, importReport{chassis, changes, notes})
	return nil
}

// finish writes what all chassis together came to.
func (s *importStore) finish(cmd *cobra.Command) error {
	t := s.target
	yamlOut := !t.apply && !t.dryRun
	where := cmd.OutOrStdout()
	if yamlOut && t.output == "" {
		where = cmd.ErrOrStderr()
	}
	if err := s.report(where, cmd.ErrOrStderr(), t.diff || t.dryRun || t.apply); err != nil {
		return err
	}
	switch {
	case !yamlOut || len(s.reports) == 0:
		return nil
	case t.output == "":
		return s.fragment(cmd.OutOrStdout(), func(n pools.NodeInfo) bool { return s.touched[n.Name] })
	}
	var b bytes.Buffer
	if err := s.fragment(&b, func(pools.NodeInfo) bool { return true }); err != nil {
		return err
	}
	return atomicfile.Write(t.output, b.Bytes(), 0o644)
}

// report shows what changes; the notes and, when nobody wants the changes, their
// number go to where errors do.
func (s *importStore) report(out, errs io.Writer, changes bool) error {
	for _, r := range s.reports {
		for _, n := range r.Notes {
			fmt.Fprintf(errs, "drover: %s: %s\n", r.Chassis, n)
		}
	}
	if s.target.format != "text" && changes {
		return printOutput(out, s.reports, s.target.format, nil)
	}
	for _, r := range s.reports {
		if changes {
			for _, c := range r.Changes {
				fmt.Fprintln(out, changeLine(c))
			}
		}
		fmt.Fprintln(out, r.summary())
	}
	return nil
}

// changeLine writes "~ m1c3n1  macs [...] -> [...]".
func changeLine(c ilo.Change) string {
	text := c.Why
	if c.Kind == ilo.New || c.Kind == ilo.Same {
		text = joinMACs(c.New.MACs)
		if c.New.IP.IsValid() {
			text += "  " + c.New.IP.String()
		}
	}
	return c.Kind.Mark() + " " + c.Name + "  " + text
}

// summary writes "m1: 45 nodes: 3 new, 42 same".
func (r importReport) summary() string {
	n := map[ilo.Kind]int{}
	for _, c := range r.Changes {
		n[c.Kind]++
	}
	var words []string
	for _, k := range []ilo.Kind{ilo.New, ilo.Changed, ilo.Same, ilo.Missing, ilo.Incomplete, ilo.Conflict} {
		if n[k] > 0 {
			words = append(words, fmt.Sprintf("%d %s", n[k], k))
		}
	}
	if len(words) == 0 {
		words = []string{"none"}
	}
	return fmt.Sprintf("%s: %d nodes: %s", r.Chassis, len(r.Changes), strings.Join(words, ", "))
}

// poolNodes is a pool of the config file with nothing but its nodes.
type poolNodes struct {
	Name  string       `json:"name"`
	Nodes []pools.Node `json:"nodes"`
}

// fragment writes nodes as they stand in the config file.
func (s *importStore) fragment(w io.Writer, which func(pools.NodeInfo) bool) error {
	var doc struct {
		Pools []*poolNodes `json:"pools"`
	}
	doc.Pools = []*poolNodes{} // [] rather than null
	for _, n := range s.nodes {
		if !which(n) {
			continue
		}
		i := slices.IndexFunc(doc.Pools, func(p *poolNodes) bool { return p.Name == n.Pool })
		if i < 0 {
			i = len(doc.Pools)
			doc.Pools = append(doc.Pools, &poolNodes{Name: n.Pool})
		}
		doc.Pools[i].Nodes = append(doc.Pools[i].Nodes, n.Node)
	}
	return printNodes(w, doc)
}

// printNodes writes pools as a person would: each node on a line of its own.
func printNodes(w io.Writer, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var top yaml.Node
	if err := yaml.Unmarshal(b, &top); err != nil { // JSON is YAML
		return err
	}
	blockStyle(&top)
	for _, pool := range top.Content[0].Content[1].Content {
		for _, node := range pool.Content[3].Content { // name, its value, nodes, theirs
			node.Style = yaml.FlowStyle
			quoteMACs(node)
		}
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&top); err != nil {
		return err
	}
	return enc.Close()
}

// quoteMACs quotes the MACs of a node as the documentation does: bare, some of
// them are numbers to base 60 in YAML 1.1.
func quoteMACs(node *yaml.Node) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != "macs" {
			continue
		}
		for _, m := range node.Content[i+1].Content {
			m.Style = yaml.DoubleQuotedStyle
		}
	}
}

// readFragment reads what fragment wrote; a file that is not there is empty.
func readFragment(path string) ([]pools.NodeInfo, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var v any
	var doc struct{ Pools []poolNodes }
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, err := json.Marshal(v)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(&doc)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: that is not a list of nodes that import wrote: %w (compare with a whole config by --config)", path, err)
	}
	var nodes []pools.NodeInfo
	for _, p := range doc.Pools {
		for _, n := range p.Nodes {
			nodes = append(nodes, pools.NodeInfo{PoolNode: pools.PoolNode{Pool: p.Name, Node: n}})
		}
	}
	return nodes, nil
}
