package node

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
)

func newRemoveCommand(c *cli.Client) *cobra.Command {
	ch := &change{api: c}
	cmd := &cobra.Command{
		Use:     "rm NAME...",
		Aliases: []string{"remove"},
		Short:   "Remove nodes that were added over the API, all in one step",
		Long: `Rm removes nodes, with their boots and next boots. NAME can be a range such as
m1c[01-45]. It removes all of the nodes or none. It shows them and asks, unless they are a
single one that is typed out by name. Nodes of the config file are removed there.`,
		Example: `  drover node rm m1c30
  drover node rm m1c[01-45] --dry-run
  drover node rm -l pool=old -y -o json`,
		RunE: func(cmd *cobra.Command, args []string) error { return ch.remove(cmd, args) },
	}
	ch.flags(cmd, true)
	return cmd
}

// remove removes the chosen nodes.
func (ch *change) remove(cmd *cobra.Command, names []string) error {
	nodes, err := ch.nodes(cmd, names)
	if err != nil {
		return err
	}
	changes, removed, gone := []pools.NodeChange{}, []cli.Done{}, []string{}
	for _, n := range nodes {
		if n.CatchAll {
			return fmt.Errorf("%s is a machine that no node declares: there is nothing to remove (drover boot forget removes its boots)", n.Name)
		}
		old := n.PoolNode
		changes = append(changes, pools.NodeChange{Old: &old})
		removed, gone = append(removed, cli.Done{Name: n.Name, Done: "removed"}), append(gone, n.Name)
	}
	typed := ch.sel.typed(nodes)
	made, err := ch.made(cmd, changes, func(shown int) bool { return !typed || shown > 1 })
	switch {
	case err != nil:
		return err
	case !made: // a dry run, or nothing to remove
		removed, gone = []cli.Done{}, nil
	}
	return ch.output.PrintNamed(cmd, removed, gone, func(w io.Writer) error {
		for _, name := range gone {
			if _, err := fmt.Fprintln(w, "removed", name); err != nil {
				return err
			}
		}
		return nil
	})
}
