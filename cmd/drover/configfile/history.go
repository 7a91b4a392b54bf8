package configfile

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/include"
	"drover/pools/resolve"
	"drover/web/client"
)

func newHistoryCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the configs that were active, with who, when, by which way, and their size",
		Long: `History lists the last 50 contents of the config file that were active, with those of the
files that it includes. The first line is the newest one. The size is what it did to nodes
when it became active. Nodes of the API and objects of an admin cluster are not in it.

Ways: start, file (it has changed), signal, request (drover reload or the page), rollback.`,
		Example: "  drover config history\n  drover config history -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "table", func(ctx context.Context, _ []string) ([]pools.ConfigEntry, error) {
		return cli.Get(ctx, c, client.ConfigHistory)
	}, func(w io.Writer, all []pools.ConfigEntry) error {
		return cli.Table(w, all, "NUMBER\tTIME\tWAY\tWHO\tNODES\tSIZE", func(e pools.ConfigEntry) []any {
			way := string(e.Way)
			if e.Rollback > 0 {
				way = fmt.Sprintf("%s to %d", way, e.Rollback)
			}
			return []any{e.Number, e.Time, way, e.Who, e.Nodes, e.Size.Counts()}
		})
	})
	return cmd
}

// number is an argument with the number of a config.
func number(arg string) (string, error) {
	if n, err := strconv.Atoi(arg); err != nil || n < 1 {
		return "", &cli.Error{Code: cli.Usage, Err: fmt.Errorf("%q is not a number of the history: see drover config history", arg)}
	}
	return arg, nil
}

// version returns a config of the history.
func version(ctx context.Context, c *cli.Client, arg string) (v pools.ConfigVersion, err error) {
	if arg, err = number(arg); err != nil {
		return v, err
	}
	return cli.Get(ctx, c, client.ConfigVersion.Of(arg))
}

func newShowCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NUMBER",
		Short: "Print a config that was active, with the files that it included",
		Long: `Show prints the text of the config file as it was when it was active, and those of the
files that it included, each below a line with its name. It can have secrets.`,
		Example: "  drover config show 12\n  drover config show 12 -o json",
		Args:    cobra.ExactArgs(1),
	}
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (pools.ConfigVersion, error) {
		return version(ctx, c, args[0])
	}, func(w io.Writer, v pools.ConfigVersion) error {
		_, err := io.WriteString(w, v.Content)
		for _, p := range v.Included {
			if err == nil {
				_, err = fmt.Fprintf(w, "\n# --- %q ---\n%s", p.File, p.Content)
			}
		}
		return err
	})
	return cmd
}

func newHistoryDiffCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff NUMBER [NUMBER]",
		Short: "Show what differs between a config that was active and another one, or the active one",
		Long: `Diff compares a config of the history with a later one, or with the active one, as drover
diff does with a file: which nodes come and go, and what the next boot of each node that
stays gets otherwise. Nodes of the API are compared as they are now, unless a config has
no place for them.`,
		Example: "  drover config diff 12\n  drover config diff 12 14 -o json",
		Args:    cobra.RangeArgs(1, 2),
	}
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (d diff, err error) {
		before, err := version(ctx, c, args[0])
		if err != nil {
			return d, err
		}
		now, err := cli.Get(ctx, c, client.Config)
		if err != nil {
			return d, err
		}
		after := pools.ConfigVersion{Content: now.Content, Included: now.Included}
		if len(args) > 1 {
			if after, err = version(ctx, c, args[1]); err != nil {
				return d, err
			}
		}
		added, err := c.AddedNodes(ctx)
		if err != nil {
			return d, err
		}
		return versionsDiffer(textOf(now.File, before.Content, before.Included), textOf(now.File, after.Content, after.Included), added)
	}, func(w io.Writer, d diff) error { return d.text(w) })
	return cmd
}

// versionsDiffer compares two configs with the nodes of the API; without them, if one of the
// configs has no place for them.
func versionsDiffer(before, after *include.Text, added []pools.PoolNode) (d diff, err error) {
	var farms [2]*resolve.Farm
	for _, nodes := range [...][]pools.PoolNode{added, nil} {
		for i, text := range [...]*include.Text{before, after} {
			if farms[i], err = config.ParseText(text, nodes...); err != nil {
				break
			}
		}
		if err == nil {
			return differences(farms[0], farms[1])
		}
	}
	return d, fmt.Errorf("a config of the history, as this drover reads it: %w", err)
}

func newRollbackCommand(c *cli.Client) *cobra.Command {
	var yes, try bool
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "rollback NUMBER",
		Short: "Make a config active that was so before, until the file agrees with it",
		Long: `Rollback makes a config of the history active. It is checked as a file is, and asks before
it changes anything. The config file is not written: the rollback stays, across restarts
too, until the file has the same content again, or drover reload --yes makes the file
count. Until then changes of the file are not made, and drover status says so.`,
		Example: "  drover config rollback 12\n  drover config rollback 12 --dry-run\n  drover config rollback 12 -y -o json",
		Args:    cobra.ExactArgs(1),
	}
	cli.YesFlag(cmd, &yes)
	cmd.Flags().BoolVar(&try, "dry-run", false, "show the size of the change, and make none")
	output.Flag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		to, err := number(args[0])
		if err != nil {
			return err
		}
		r, err := cli.Send(cmd.Context(), c, client.RollbackConfig.Try(), client.None{}, to)
		if err != nil {
			return err
		}
		if try {
			return output.Print(cmd, r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "size: %s\n", r.Size)
				return err
			})
		}
		if err := cli.Confirm(cmd, yes, fmt.Sprintf("Roll the config back to %s? Size of the change: %s.", to, r.Size.Counts())); err != nil {
			return err
		}
		if r, err = cli.Send(cmd.Context(), c, client.RollbackConfig, client.None{}, to); err != nil {
			return err
		}
		return output.Print(cmd, r, func(w io.Writer) error { return rolledBack(w, to, &r) })
	}
	return cmd
}

// rolledBack prints what a rollback has done.
func rolledBack(w io.Writer, to string, r *pools.ReloadResult) error {
	_, err := fmt.Fprintf(w, "config %s is in force: %d nodes\nsize: %s\n", to, r.Nodes, r.Size)
	if err == nil && r.Held != nil {
		_, err = fmt.Fprintln(w, r.Held.Text())
	}
	if err == nil && r.RestartPending {
		_, err = fmt.Fprintln(w, restartPending)
	}
	return err
}
