package node

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/natural"
	"drover/internal/printable"
	"drover/pools"
	"drover/web/client"
)

// follow prints the nodes that the selector chooses, and then each change of them. It waits
// for a server that restarts.
func (s *selector) follow(cmd *cobra.Command, c *cli.Client, format string) error {
	names, rules, err := s.parts()
	switch {
	case err != nil:
		return err
	case format != "table" && format != "json":
		return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--watch prints a table or json, not %s", format)}
	}
	out := cmd.OutOrStdout()
	if format == "table" {
		printChange(out, "CHANGE", "NAME", "POOL", "IP", "STATE", "NOTE")
	}
	answered, f := false, following{names, rules, map[string]pools.NodeInfo{}}
	for e, err := range cli.Watch(cmd.Context(), c, client.Nodes, query(names, rules)...) {
		if err != nil {
			if code := cli.CodeOf(err); !answered || code == cli.Refused {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "drover:", err)
			continue
		}
		answered = true
		for _, l := range f.event(e) {
			if err := printNode(out, format, l.kind, l.node); err != nil {
				return err
			}
		}
	}
	return nil // interrupted by the user: the normal end
}

// following chooses nodes of a watch, and has those that it has shown and that are there still.
type following struct {
	names []string // none: all
	rules []rule
	shown map[string]pools.NodeInfo
}

// followed is a node that is there, added, changed or removed.
type followed struct {
	kind string
	node pools.NodeInfo
}

// event returns what an event says about the chosen nodes. A list that comes again, from a server
// that has restarted, lacks those that are gone.
func (f *following) event(e client.Event[pools.NodeInfo]) (out []followed) {
	if e.Kind != "list" {
		return f.node(e.Kind, e.Element)
	}
	gone := maps.Clone(f.shown)
	for _, n := range e.List {
		delete(gone, n.Name)
		out = append(out, f.node("is", n)...)
	}
	for _, name := range slices.SortedFunc(maps.Keys(gone), natural.Compare) {
		out = append(out, f.node("removed", gone[name])...)
	}
	return out
}

// node returns what is to be shown of a node; nothing of one that is not chosen. One that no longer
// fits is removed.
func (f *following) node(kind string, n pools.NodeInfo) []followed {
	chosen := kind != "removed" && fits(&n, f.rules) && (len(f.names) == 0 || slices.Contains(f.names, n.Name))
	_, was := f.shown[n.Name]
	switch {
	case chosen:
		f.shown[n.Name] = n
	case was:
		delete(f.shown, n.Name)
		kind = "removed"
	default:
		return nil
	}
	return []followed{{kind, n}}
}

// printNode prints a node that is there, added, changed or removed.
func printNode(w io.Writer, format, kind string, n pools.NodeInfo) error {
	if format != "json" {
		s := statusOf(&n)
		printChange(w, kind, n.Name, n.Pool, cli.AddrOrDash(s.Address), string(s.State), s.Detail)
		return nil
	}
	line, err := json.Marshal(struct {
		Change string         `json:"change"`
		Node   pools.NodeInfo `json:"node"`
	}{kind, n})
	if err == nil {
		_, err = w.Write(append(printable.EscapeJSON(line), '\n'))
	}
	return err
}

func printChange(w io.Writer, kind, name, pool, address, state, note string) {
	fmt.Fprintln(w, printable.Text(fmt.Sprintf("%-8s  %-20s  %-12s  %-15s  %-8s  %s", kind, name, pool, address, state, cli.OrDash(note))))
}
