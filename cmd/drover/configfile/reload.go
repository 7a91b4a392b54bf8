package configfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/web/client"
)

// answers are the flags of the command reload.
type answers struct{ yes, no bool }

func newReloadCommand() *cobra.Command {
	c := &cli.Client{}
	var say answers
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make a running server read its config file again, and say what is wrong with it",
		Long: `Reload makes a running server read its config file, as it does by itself within
seconds after a change. A file with a mistake leaves the old config in force; reload
prints the mistakes and fails. The size is what the change does to nodes. Changes below "server" are pending until a restart.

A change that removes, moves to another cluster or re-addresses more nodes than
server.brake lets through waits: the old config stays in force, and reload fails and
says so. With --yes the change is made, with --no it is dropped until the file changes
again. After a rollback (drover config rollback) --yes makes the file count again.`,
		Example: "  drover reload\n  drover reload --yes\n  drover reload --no -o json",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVarP(&say.yes, "yes", "y", false, "make the change, however many nodes it disrupts")
	cmd.Flags().BoolVar(&say.no, "no", false, "drop the change that waits")
	cmd.MarkFlagsMutuallyExclusive("yes", "no")
	output.Flag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := say.reload(cmd.Context(), c)
		if err != nil {
			return err
		}
		if err := output.Print(cmd, r, func(w io.Writer) error { return reloaded(w, &r) }); err != nil {
			return err
		}
		if r.Held != nil && !say.no {
			return errors.New(r.Held.Text())
		}
		return nil
	}
	c.Flags(cmd)
	return cmd
}

// reload reads the file again, and gives the answer to a change that waits.
func (a *answers) reload(ctx context.Context, c *cli.Client) (r pools.ReloadResult, err error) {
	if a.no {
		now, err := cli.Get(ctx, c, client.Config)
		if err != nil {
			return r, err
		}
		if now.Held == nil || now.Held.Why != pools.HeldByBrake {
			return r, errors.New("no change of the config file waits for an answer")
		}
		return cli.Send(ctx, c, client.AnswerConfig, pools.ConfigAnswer{SHA256: now.Held.SHA256, Drop: true})
	}
	if r, err = cli.Send(ctx, c, client.ReloadConfig, client.None{}); err != nil || r.Held == nil || !a.yes {
		return r, err
	}
	return cli.Send(ctx, c, client.AnswerConfig, pools.ConfigAnswer{SHA256: r.Held.SHA256})
}

const restartPending = "restart pending: server: changed, or the first subnet of IPv4 or IPv6 came"

// reloaded prints what a reload has done.
func reloaded(w io.Writer, r *pools.ReloadResult) (err error) {
	if r.Held == nil {
		_, err = fmt.Fprintf(w, "%s is in force: %d nodes\nsize: %s\n", r.File, r.Nodes, r.Size)
	} else {
		_, err = fmt.Fprintf(w, "%s is not in force, all stays as it is: %d nodes\nsize of the change: %s\n", r.File, r.Nodes, r.Held.Size)
	}
	if err == nil && r.RestartPending {
		_, err = fmt.Fprintln(w, restartPending)
	}
	return err
}
