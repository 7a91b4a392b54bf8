package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/natural"
	"drover/migrate/nodefile"
	"drover/pools"
	"drover/pools/config/mistake"
	"drover/web/answer"
)

// Apply is drover apply for a file of nodes: it makes the nodes of a server those of the file.
type Apply struct {
	change
	client cli.Client
	prune  bool
}

// onlyNodes are the flags that only a file of nodes takes.
var onlyNodes = []string{"prune", "selector", "api", "token-file", "context"}

// Flags adds the flags to a command that also takes other files. The help says which flags are
// for nodes.
func (a *Apply) Flags(cmd *cobra.Command) {
	a.api = &a.client
	a.client.Flags(cmd)
	a.flags(cmd, false)
	cmd.Flags().BoolVar(&a.prune, "prune", false, "also remove those of the server that the file does not have, in the pools that it names")
	a.sel.flag(cmd, "--prune removes those that these rules choose, in place of those of the pools")
	for _, name := range onlyNodes {
		flag := cmd.Flag(name)
		flag.Usage = "nodes: " + flag.Usage
	}
}

// DryRun reports whether the flag --dry-run was given.
func (a *Apply) DryRun() bool { return a.dryRun }

// Output returns the format of the output.
func (a *Apply) Output() *cli.Output { return &a.output }

// OnlyNodes returns an error if the command has a flag that only a file of nodes takes.
func (a *Apply) OnlyNodes(cmd *cobra.Command) error {
	for _, name := range onlyNodes {
		if cmd.Flags().Changed(name) {
			return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--%s is for files of nodes, which go to a running server; objects are put into the file of --config", name)}
		}
	}
	return nil
}

// Run applies a file.
func (a *Apply) Run(cmd *cobra.Command, file string, data []byte) error {
	if !a.sel.isZero() && !a.prune {
		return &cli.Error{Code: cli.Usage, Err: errors.New("--selector says what --prune removes: give both")}
	}
	if _, _, err := a.sel.parts(); err != nil {
		return err
	}
	entries, err := nodefile.Read(file, data)
	if err != nil {
		return cli.PrintMistakes(file, err, cmd.ErrOrStderr())
	}
	all, err := a.client.Nodes(cmd.Context())
	if err != nil {
		return err
	}
	changes, errs := changesOf(entries, all)
	if len(errs) > 0 {
		return cli.PrintMistakes(file, errs.Err(), cmd.ErrOrStderr())
	}
	if a.prune {
		gone, err := a.pruned(cmd.Context(), entries, all)
		if err != nil {
			return err
		}
		changes = append(changes, gone...)
	}
	if err := fitsRequest(changes); err != nil {
		return err
	}
	done, names := []cli.Done{}, []string{}
	for _, c := range changes {
		d := cli.Done{Name: cmp.Or(c.New, c.Old).Name, Done: "changed"}
		switch {
		case c.Old == nil:
			d.Done = "added"
		case c.New == nil:
			d.Done = "removed"
		}
		done, names = append(done, d), append(names, d.Name)
	}
	made, err := a.made(cmd, changes, func(int) bool { return true })
	switch {
	case err != nil:
		return err
	case !made:
		done, names = []cli.Done{}, nil
	}
	return a.output.PrintNamed(cmd, done, names, func(w io.Writer) error {
		if !made {
			return nil
		}
		_, err := fmt.Fprintf(w, "%s: %s\n", file, tally(changes, "added", "changed", "removed"))
		return err
	})
}

// changesOf returns the changes that make the nodes of the API those of a file.
func changesOf(entries []nodefile.Entry, all []pools.NodeInfo) (changes []pools.NodeChange, errs mistake.Errors) {
	there := map[string]*pools.NodeInfo{}
	for i := range all {
		there[all[i].Name] = &all[i]
	}
	for _, e := range entries {
		var old *pools.PoolNode
		if n := there[e.Node.Name]; n != nil {
			if n.Declared() {
				errs = append(errs, &mistake.Error{
					Origin: e.Origin, Msg: fmt.Sprintf("node %q is declared in %s", n.Name, from(*n)),
					Hint: "change it there, and leave it out here",
				})
				continue
			}
			old = &n.PoolNode
		}
		next := e.Onto(old)
		if next.Pool == "" {
			errs = append(errs, &mistake.Error{Origin: e.Origin, Msg: fmt.Sprintf("node %q is new and has no pool", next.Name), Hint: "add a column pool"})
			continue
		}
		if old == nil || !equal(old, &next) {
			changes = append(changes, pools.NodeChange{Old: old, New: &next})
		}
	}
	return changes, errs
}

// equal reports whether two nodes are the same to the API.
func equal(a, b *pools.PoolNode) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// pruned returns the removal of nodes that a file does not have: of those that the selector
// chooses, or else of those in the pools that the file names. Nodes of the config file and of
// chassis stay: they would come back.
func (a *Apply) pruned(ctx context.Context, entries []nodefile.Entry, all []pools.NodeInfo) (gone []pools.NodeChange, err error) {
	inPools := nodefile.Pools(entries)
	if !a.sel.isZero() {
		if all, err = a.sel.nodes(ctx, &a.client); err != nil {
			return nil, err
		}
	}
	kept := map[string]bool{}
	for _, e := range entries {
		kept[e.Node.Name] = true
	}
	for _, n := range all {
		if kindOf(&n) == "api" && !kept[n.Name] && (!a.sel.isZero() || inPools[n.Pool]) {
			gone = append(gone, pools.NodeChange{Old: &n.PoolNode})
		}
	}
	slices.SortFunc(gone, func(x, y pools.NodeChange) int { return natural.Compare(x.Old.Name, y.Old.Name) })
	return gone, nil
}

// fitsRequest returns an error for changes that a server does not take in one step.
func fitsRequest(changes []pools.NodeChange) error {
	b, err := json.Marshal(pools.NodeBatch{Changes: changes})
	if err == nil && len(b) > answer.MaxBody {
		err = fmt.Errorf("%d nodes change: that is %d MiB, and a server takes %d MiB in one step (apply a file for each pool)", len(changes), len(b)>>20+1, answer.MaxBody>>20)
	}
	return err
}

// Export prints the nodes of a server that were added to it, as [Apply] reads them: in the format
// nodes or csv. The rules are those of [RulesFlag].
func Export(cmd *cobra.Command, c *cli.Client, rules []string, format string) error {
	sel := selector{rules: rules}
	all, err := sel.found(cmd.Context(), c)
	if err != nil {
		return err
	}
	var nodes []pools.PoolNode
	for _, n := range all {
		if kind := kindOf(&n); kind == "api" || kind == "chassis" {
			nodes = append(nodes, n.PoolNode)
		}
	}
	slices.SortStableFunc(nodes, func(x, y pools.PoolNode) int { return natural.Compare(x.Name, y.Name) })
	if format == "nodes" {
		return nodefile.WriteList(cmd.OutOrStdout(), nodes)
	}
	more, err := nodefile.WriteTable(cmd.OutOrStdout(), nodes)
	if err == nil && len(more) > 0 {
		err = &cli.Error{Code: cli.Partly, Err: fmt.Errorf("of %d nodes, such as %s, a table does not have all (--format nodes has; drover apply keeps what a table lacks)", len(more), more[0])}
	}
	return err
}
