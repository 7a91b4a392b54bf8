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

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/include"
	"drover/web/client"
)

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newInitCommand(), newConfigCommand(), newDiffCommand(), newReloadCommand()}
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
		now, err := cli.Get(ctx, c, client.Config)
		if err != nil {
			return diff{}, err
		}
		added, err := c.AddedNodes(ctx)
		if err != nil {
			return diff{}, err
		}
		before, err := config.ParseText(textOf(now.File, now.Content, now.Included), added...)
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

// textOf returns a text that the server has sent.
func textOf(file, content string, included []pools.ConfigPart) *include.Text {
	return &include.Text{File: file, Main: []byte(content), Included: included, From: include.Given}
}
