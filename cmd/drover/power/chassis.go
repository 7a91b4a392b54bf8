package power

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/wait"
	"drover/pools"
	"drover/web/client"
)

func newChassisCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "chassis",
		Short: "List and read the chassis whose nodes a running server keeps",
	}
	c.Flags(cmd)
	return cli.Group(cmd, newChassisListCommand(c), newChassisSyncCommand(c))
}

func newChassisListCommand(c *cli.Client) *cobra.Command {
	var order cli.Order
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the chassis of the config, each with its last result",
		Example: "  drover chassis list\n  drover chassis list --sort last\n  drover chassis list -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "table", func(ctx context.Context, _ []string) ([]pools.ChassisStatus, error) {
		by, err := order.Query()
		if err != nil {
			return nil, err
		}
		return cli.Get(ctx, c, client.Chassis, "sort", by)
	}, chassisTable)
	order.Flag(cmd, "name", "pool", "last")
	return cmd
}

func fetchChassis(c *cli.Client, ctx context.Context) ([]pools.ChassisStatus, error) {
	return cli.Get(ctx, c, client.Chassis)
}

func chassisTable(w io.Writer, all []pools.ChassisStatus) error {
	now := time.Now()
	return cli.Table(w, all, "CHASSIS\tADDRESS\tVIA\tEVERY\tNODES\tLAST GOOD\tSTATE", func(c pools.ChassisStatus) []any {
		every, good := "-", "never"
		if c.Interval > 0 {
			every = c.Interval.String()
		}
		if !c.Good.IsZero() {
			good = now.Sub(c.Good).Round(time.Second).String() + " ago"
		}
		return []any{c.Name, c.Address, c.Via, every, c.Nodes, good, chassisState(c)}
	})
}

// chassisState describes the state of a chassis.
func chassisState(c pools.ChassisStatus) string {
	switch {
	case c.Asking:
		return "asking"
	case c.Stopped:
		return "given up: " + c.Error
	case c.Error != "":
		return c.Error
	case c.Last.IsZero():
		return "not asked yet"
	}
	var words []string
	for _, kind := range []string{"new", "changed", "same", "missing", "incomplete", "conflict"} {
		if n := c.Counts[kind]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(words, ", ")
}

func newChassisSyncCommand(c *cli.Client) *cobra.Command {
	var timeout time.Duration
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "sync NAME...",
		Short: "Ask chassis now which nodes they hold, and store them",
		Long: `Sync lets the server read chassis of its config now, and waits for the result.
The server adds and changes nodes, and removes none. A chassis that refused the
login before is tried once more.`,
		Example: "  drover chassis sync m1\n  drover chassis sync m1 m2 -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			var errs []error
			all, read := []pools.ChassisStatus{}, []string{}
			for _, name := range names {
				status, err := syncChassis(c, ctx, output.Log(cmd), cmd.ErrOrStderr(), name)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				all, read = append(all, status), append(read, name)
			}
			if err := output.PrintNamed(cmd, all, read, func(io.Writer) error { return nil }); err != nil {
				return err
			}
			if len(errs) > 0 && len(errs) < len(names) {
				return &cli.Error{Code: cli.Partly, Err: errors.Join(errs...)}
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Minute, "how long to wait")
	output.Flag(cmd, "text", "name", "json", "yaml")
	return cmd
}

func findChassis(c *cli.Client, ctx context.Context, name string) (status pools.ChassisStatus, found bool, err error) {
	all, err := fetchChassis(c, ctx)
	if i := slices.IndexFunc(all, func(s pools.ChassisStatus) bool { return s.Name == name }); i >= 0 {
		return all[i], true, err
	}
	return status, false, err
}

// syncChassis lets the server read one chassis, and waits for the end.
func syncChassis(c *cli.Client, ctx context.Context, out, errs io.Writer, name string) (now pools.ChassisStatus, err error) {
	before, _, err := findChassis(c, ctx, name)
	if err != nil {
		return now, err
	}
	if _, err := cli.Send(ctx, c, client.SyncChassis, client.None{}, name); err != nil {
		return now, err
	}
	for {
		now, found, err := findChassis(c, ctx, name)
		switch {
		case err != nil:
			return now, err
		case !found:
			return now, fmt.Errorf("%s is not in the config any more", name)
		case now.Last.After(before.Last) && !now.Asking:
			for _, p := range now.Problems {
				cli.Note(errs, name, p)
			}
			if now.Error != "" {
				return now, fmt.Errorf("%s: %s", name, now.Error)
			}
			fmt.Fprintf(out, "%s: %d nodes: %s\n", name, now.Nodes, chassisState(now))
			return now, nil
		}
		if wait.Sleep(ctx, 200*time.Millisecond) != nil {
			return now, fmt.Errorf("%s did not answer in time (drover chassis list says more)", name)
		}
	}
}
