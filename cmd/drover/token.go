package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"drover/cmd/drover/apitoken"
	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/web/client"
)

func newTokenCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make tokens of the REST API, and show the shared join token of a cluster",
		Long: `Create, list, rotate and revoke work on the named tokens of the REST API, each with
a role. They need a token with the role admin, as the server's own in api.token is.

Show is for clusters with "token: {mode: shared}" in the config, and for nodes that
cannot ask for their own join token. All other nodes get theirs while they boot.`,
	}
	c.Flags(cmd)
	return cli.Group(cmd, append(apitoken.Commands(c), newTokenShowCommand(c))...)
}

func newTokenShowCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show CLUSTER",
		Short: "Print the token that nodes of a cluster join with now",
		Long: `Show prints the newest shared token only; with -o json or yaml also its end, the
endpoint of the cluster and its CA hashes. The token is secret: its holder can
become a node of the cluster. The token before it stays valid until the next
rotation.`,
		Example: "  drover token show tenant-a\n  drover token show tenant-a -o json",
		Args:    cobra.ExactArgs(1),
	}
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (pools.JoinToken, error) {
		return cli.Get(ctx, c, client.JoinToken.Of(args[0]))
	}, func(w io.Writer, t pools.JoinToken) error {
		_, err := fmt.Fprintln(w, t.Token)
		return err
	})
	return cmd
}
