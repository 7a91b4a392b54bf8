package node

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/web/client"
)

// retired prints the nodes that the config has lost.
func (s *selector) retired(cmd *cobra.Command, c *cli.Client, follow bool, output *cli.Output) error {
	if !s.isZero() || follow {
		return &cli.Error{Code: cli.Usage, Err: errors.New("--retired lists all retired nodes: it takes no NAME, --selector or --watch")}
	}
	all, err := cli.Get(cmd.Context(), c, client.Retired)
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	table := func(w io.Writer) error {
		return cli.Table(w, all, "NAME\tPOOL\tIP\tMACS\tFROM\tSINCE\tUNTIL", func(n pools.RetiredNode) []any {
			return []any{n.Name, n.Pool, n.IP, joinMACs(n.MACs), n.From, n.Since, n.Until}
		})
	}
	if output.Format() == "wide" {
		return table(cmd.OutOrStdout())
	}
	return output.PrintNamed(cmd, all, names, table)
}

func newForgetCommand(c *cli.Client) *cobra.Command {
	return c.DeleteEach(&cobra.Command{
		Use:   "forget NAME...",
		Short: "Forget nodes that the config has lost, before their time",
		Long: `Forget removes retired nodes, with their boots and next boots: nodes that the config has
lost, and that keep their addresses for server.retire (drover node list --retired). A
machine that runs as such a node loses its address when it renews it. Nodes of the config
and of the API are not forgotten: see drover node rm.`,
		Example: "  drover node forget web-07\n  drover node forget web-07 web-08 -o json",
		Args:    cobra.MinimumNArgs(1),
	}, client.ForgetRetired, "forgot", cli.AnyName)
}
