package node

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
)

const unknownPath = "/api/v1/unknown"

func newUnknownCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "unknown",
		Short: "List and adopt machines that asked for an address and that no node declares",
		Long: `Unknown works, over the REST API, on the machines that asked a running drover for
an address and that no node declares. drover keeps the last 4096 of them. To make
them nodes, use drover unknown adopt.`,
	}
	c.Flags(cmd)
	return cli.Group(cmd, newUnknownListCommand(c), newUnknownForgetCommand(c), newUnknownAdoptCommand(c))
}

func newUnknownListCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List unknown machines, most recent first",
		Example: "  drover unknown list\n  drover unknown list -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "text", func(ctx context.Context, _ []string) ([]pools.Unknown, error) {
		return cli.Get[[]pools.Unknown](ctx, c, unknownPath)
	}, unknownTable)
	return cmd
}

func unknownTable(w io.Writer, machines []pools.Unknown) error {
	return cli.Table(w, machines, "MAC\tLAST SEEN\tTIMES\tFIRMWARE\tCLASS\tCAME BY\tPOOL\tADDRESS", func(u pools.Unknown) []any {
		return []any{u.MAC, u.Last, u.Count, u.Firmware, u.Class, cameBy(u), u.Pool, u.Address}
	})
}

// cameBy returns the relay agent of a machine's packets, with its circuit and remote
// identifiers, as text.
func cameBy(u pools.Unknown) string {
	var words []string
	if u.Relay.IsValid() {
		words = append(words, u.Relay.String())
	}
	for _, s := range []string{u.Circuit, u.Remote} {
		if s != "" {
			words = append(words, s)
		}
	}
	return strings.Join(words, " ")
}

func newUnknownForgetCommand(c *cli.Client) *cobra.Command {
	return &cobra.Command{
		Use:     "forget MAC...",
		Short:   "Forget unknown machines; one that asks again returns",
		Example: "  drover unknown forget 94:57:a5:d3:ec:f2",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if _, err := pools.ParseMAC(a); err != nil {
					return &cli.Error{Code: cli.Usage, Err: err}
				}
			}
			return c.DeleteEach(cmd, unknownPath, "forgot", args)
		},
	}
}
