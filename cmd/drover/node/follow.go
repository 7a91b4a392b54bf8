package node

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
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
	answered, shown := false, map[string]bool{}
	for e, err := range cli.Watch(cmd.Context(), c, client.Nodes, query(names, rules)...) {
		if err != nil {
			if code := cli.CodeOf(err); !answered || code == cli.Refused {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "drover:", err)
			continue
		}
		answered = true
		kind := e.Kind
		if kind == "list" {
			kind = "is"
		} else {
			e.List = []pools.NodeInfo{e.Element}
		}
		for _, n := range e.List {
			chosen := kind != "removed" && fits(&n, rules) && (len(names) == 0 || slices.Contains(names, n.Name))
			switch {
			case chosen:
				shown[n.Name] = true
			case shown[n.Name]: // it is gone, or fits no more
				delete(shown, n.Name)
				kind = "removed"
			default:
				continue
			}
			if err := printNode(out, format, kind, n); err != nil {
				return err
			}
		}
	}
	return nil // interrupted by the user: the normal end
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
