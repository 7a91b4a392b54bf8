package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
)

func newTokenCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Show the shared join token of a cluster",
		Long: `Token is for clusters with "token: {mode: shared}" in the config, and for nodes
that cannot ask for their own join token. All others get theirs while they boot,
and nobody needs to see it.`,
		Args: cli.NoSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.Flags(cmd)
	cmd.AddCommand(newTokenShowCommand(c))
	return cmd
}

func newTokenShowCommand(c *cli.Client) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show CLUSTER",
		Short: "Print the token that nodes of a cluster join with now",
		Long: `Show prints the newest shared token, and nothing else; with -o json or yaml also
until when it is good, where the cluster is and by what nodes know it. The token
is secret: it makes its holder a node of the cluster. The one before is good too,
until the next rotation.`,
		Example: "  drover token show tenant-a\n  drover token show tenant-a -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(output, "text"); err != nil {
				return err
			}
			var t pools.JoinToken
			if err := c.Call(cmd.Context(), http.MethodGet, "/api/v1/clusters/"+url.PathEscape(args[0])+"/token", nil, &t); err != nil {
				return err
			}
			return cli.PrintTable(cmd.OutOrStdout(), output, t, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, t.Token)
				return err
			})
		},
	}
	cli.OutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}
