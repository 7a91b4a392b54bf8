// Package configfile has the commands of drover for the config of a running server: diff
// shows what a file would change, and reload makes the server read its file again. The
// command config schema prints the JSON Schema of config files, and init writes a first one.
//
// The farms are made by package config; this package compares and prints them.
package configfile

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/include"
)

// path is that of the config in force, in the REST API.
const path = "/api/v1/config"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newInitCommand(), newConfigCommand(), newDiffCommand(), newReloadCommand()}
}

func newReloadCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make a running server read its config file again, and say what is wrong with it",
		Long: `Reload makes a running server read its config file, as it does by itself within
seconds after a change. A file with a mistake leaves the old config in force; reload
prints the mistakes and fails. The size is what the change does to nodes. Changes below "server" are pending until a restart.`,
		Example: "  drover reload\n  drover reload -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "text", func(ctx context.Context, _ []string) (r pools.ReloadResult, err error) {
		err = c.Call(ctx, http.MethodPost, path+":reload", nil, &r)
		return r, err
	}, func(w io.Writer, r pools.ReloadResult) error {
		_, err := fmt.Fprintf(w, "%s is in force: %d nodes\nsize: %s\n", r.File, r.Nodes, r.Size)
		if err == nil && r.RestartPending {
			_, err = fmt.Fprintln(w, "restart pending: server: changed, or the first subnet of IPv4 or IPv6 came")
		}
		return err
	})
	c.Flags(cmd)
	return cmd
}

func newDiffCommand() *cobra.Command {
	c := &cli.Client{}
	var file string
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Show what a config file would change, and for which nodes",
		Long: `Diff compares a config file with the config that is in force in a running server,
together with the nodes that were added over the API. It shows the nodes that would come
and go, and for each node that stays what its next boot would get otherwise. It changes
nothing. Objects of an admin cluster are not compared. The last line is the size of the change.`,
		Example: "  drover diff -c drover.yaml\n  drover diff -c drover.yaml -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "text", func(ctx context.Context, _ []string) (diff, error) {
		var now pools.ConfigInForce
		if err := c.Call(ctx, http.MethodGet, path, nil, &now); err != nil {
			return diff{}, err
		}
		added, err := c.AddedNodes(ctx)
		if err != nil {
			return diff{}, err
		}
		before, err := config.ParseText(&include.Text{File: now.File, Main: []byte(now.Content), Included: now.Included, From: include.Given}, added...)
		if err != nil {
			return diff{}, fmt.Errorf("the config in force, as this drover reads it: %w", err)
		}
		after, err := cli.LoadConfig(file, cmd.ErrOrStderr(), added...)
		if err != nil {
			return diff{}, err
		}
		return differences(before, after)
	}, func(w io.Writer, d diff) error { return d.text(w) })
	cli.ConfigFlag(cmd, &file)
	c.Flags(cmd)
	return cmd
}
