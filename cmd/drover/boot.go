package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/nodeset"
	"drover/internal/natural"
	"drover/internal/printable"
	"drover/pools"
	"drover/pools/boots"
	"drover/web/client"
)

func newBootCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "boot",
		Short: "List, follow and forget the boots of machines on a running server",
	}
	c.Flags(cmd)
	return cli.Group(cmd, newBootListCommand(c), newBootShowCommand(c), newBootWatchCommand(c), newBootForgetCommand(c))
}

func newBootListCommand(c *cli.Client) *cobra.Command {
	var node, pool string
	var stuck bool
	var since time.Duration
	var order cli.Order
	limit := 50
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List boots, newest first",
		Example: "  drover boot list --stuck --sort node\n  drover boot list --pool compute --since 1h --limit 0 -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "table", func(ctx context.Context, _ []string) ([]boots.Record, error) {
		if limit < 0 || since < 0 {
			return nil, &cli.Error{Code: cli.Usage, Err: errors.New("--limit and --since must not be negative")}
		}
		by, reversed, err := order.Parse()
		if err != nil {
			return nil, err
		}
		names, err := nodeset.Expand(node)
		if err != nil {
			return nil, &cli.Error{Code: cli.Usage, Err: err}
		}
		filter := []string{"node", strings.Join(names, ","), "pool", pool}
		if stuck {
			filter = append(filter, "stuck", "true")
		}
		if since > 0 {
			filter = append(filter, "since", time.Now().Add(-since).UTC().Format(time.RFC3339))
		}
		pages := limit
		if by != "started" || !reversed {
			pages = 0
		}
		all, err := pagesOfBoots(c, ctx, pages, filter)
		if len(all) == 0 && err == nil {
			err = cli.AnySuch(ctx, c, names, pool)
		}
		sortBoots(all, by, reversed)
		return all[:min(len(all), cmp.Or(limit, len(all)))], err
	}, bootTable)
	order.Flag(cmd, "-started", "started", "node", "pool", "cluster", "mac")
	f := cmd.Flags()
	f.StringVar(&node, "node", "", "only the boots of these nodes, such as m1c30 or m1c[01-45]")
	f.StringVar(&pool, "pool", "", "only the boots of this pool")
	f.BoolVar(&stuck, "stuck", false, "only those without progress")
	cli.DurationFlag(f, &since, "since", 0, "only those that began in this time, such as 1h or 2d")
	f.IntVar(&limit, "limit", limit, "how many at most; 0: all")
	return cmd
}

// sortBoots sorts boots; the newest of equal ones come first, as the server has them.
func sortBoots(all []boots.Record, by string, reversed bool) {
	value := map[string]func(*boots.Record) string{
		"node":    func(b *boots.Record) string { return b.Node },
		"pool":    func(b *boots.Record) string { return b.Pool },
		"cluster": func(b *boots.Record) string { return b.Cluster },
		"mac":     func(b *boots.Record) string { return b.MAC.String() },
	}[by]
	slices.SortStableFunc(all, func(a, b boots.Record) int {
		order := a.Started.Compare(b.Started)
		if value != nil {
			order = natural.Compare(value(&a), value(&b))
		}
		if reversed {
			return -order
		}
		return order
	})
}

// page is the number of boots in one answer.
const page = 1000

// pagesOfBoots requests boots page by page; limit 0: all.
func pagesOfBoots(c *cli.Client, ctx context.Context, limit int, filter []string) ([]boots.Record, error) {
	if 0 < limit && limit <= page {
		return cli.Get(ctx, c, client.Boots, append(filter, "limit", strconv.Itoa(limit))...)
	}
	all, before := []boots.Record{}, "~" // after every ID
	for {
		some, err := cli.Get(ctx, c, client.Boots, append(filter, "limit", strconv.Itoa(page), "before", before)...)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < page || limit > 0 && len(all) >= limit {
			return all[:min(len(all), cmp.Or(limit, len(all)))], nil
		}
		before = some[len(some)-1].ID
	}
}

func newBootForgetCommand(c *cli.Client) *cobra.Command {
	return c.DeleteEach(&cobra.Command{
		Use:   "forget NODE...",
		Short: "Forget the boots of nodes",
		Long: `Forget removes the timelines of nodes, so that page and metrics no longer count a boot
that ended without a report. A machine in the middle of its boot begins anew.`,
		Example: "  drover boot forget m1c30\n  drover boot forget m1c30 m1c31 -o json",
		Args:    cobra.MinimumNArgs(1),
	}, client.ForgetBoots, "forgot the boots of", cli.AnyName)
}

func fetchBoots(c *cli.Client, ctx context.Context, node string, limit int) ([]boots.Record, error) {
	return cli.Get(ctx, c, client.Boots, "limit", strconv.Itoa(limit), "node", node)
}

func bootTable(w io.Writer, all []boots.Record) error {
	return cli.Table(w, all, "STARTED\tNODE\tMAC\tCLUSTER\tIMAGE\tSTEP\tAFTER\tERROR", func(b boots.Record) []any {
		step, after := "-", "-"
		if s, ok := b.Furthest(); ok {
			step, after = string(s.Step), seconds(b, s)+" s"
		}
		return []any{b.Started, b.Node, b.MAC, b.Cluster, pools.ShortImage(b.Image, b.Generation), step, after, trouble(b)}
	})
}

// trouble returns the error of a boot, or the step that it is stuck at; empty for a
// boot without problems.
func trouble(b boots.Record) string {
	switch {
	case b.Error != "":
		return b.Error
	case b.Stuck == nil:
		return ""
	case b.Stuck.Usual == 0:
		return fmt.Sprintf("stuck after %s", b.Stuck.After)
	}
	return fmt.Sprintf("stuck after %s, where the next step usually takes %.1f s", b.Stuck.After, b.Stuck.Usual.D().Seconds())
}

func newBootShowCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NODE|MAC|ADDRESS",
		Short: "Show the timeline of a node's newest boot",
		Long: `Show prints each step of the newest boot of a node with the seconds since the
first DISCOVER of its firmware, and since the step before.`,
		Example: "  drover boot show m1c30\n  drover boot show 94:57:a5:d3:ec:f4\n  drover boot show m1c30 -o json",
		Args:    cobra.ExactArgs(1),
	}
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (boots.Record, error) {
		name, err := cli.NodeNamed(ctx, c, args[0])
		if err != nil {
			return boots.Record{}, err
		}
		newest, err := fetchBoots(c, ctx, name, 1)
		if err == nil && len(newest) == 0 {
			err = fmt.Errorf("no boot of node %q is known", name)
		}
		if err != nil {
			return boots.Record{}, err
		}
		return newest[0], nil
	}, timeline)
	return cmd
}

func timeline(w io.Writer, b boots.Record) error {
	fmt.Fprintf(w, "%s (%s), image %s, cluster %s, started %s UTC\n\n", b.Node, b.MAC, pools.ShortImage(b.Image, b.Generation), cli.OrDash(b.Cluster), b.Started.UTC().Format(time.DateTime))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, s := range b.Steps {
		text := s.Detail
		if s.Error != "" {
			text = "error: " + s.Error
		}
		// The last cell of a line has no tab after it, so that it widens no column.
		fmt.Fprintf(t, "%s s\t%s\t  %s\n", seconds(b, s), took(b, s), strings.TrimSpace(printable.Text(fmt.Sprintf("%-11s %s", s.Step, text))))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	switch {
	case b.Error != "":
		fmt.Fprintf(w, "\nlast error: %s\n", b.Error)
	case b.Stuck != nil:
		fmt.Fprintf(w, "\n%s\n", trouble(b))
	}
	return nil
}

// took returns the time from the step before, as text.
func took(b boots.Record, s boots.StepTime) string {
	d, ok := b.Took(s)
	if !ok || s.Error != "" {
		return ""
	}
	return "+" + strconv.FormatFloat(d.Seconds(), 'f', 1, 64)
}

// seconds returns the time from the first DISCOVER to a step, in seconds.
func seconds(b boots.Record, s boots.StepTime) string {
	return strconv.FormatFloat(s.Time.Sub(b.Started).Seconds(), 'f', 1, 64)
}
