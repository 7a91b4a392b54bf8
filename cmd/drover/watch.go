package main

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
	"drover/pools/boots"
	"drover/pools/wait"
)

func newBootWatchCommand(c *cli.Client) *cobra.Command {
	w := watcher{printed: map[string]int{}}
	var timeout, since time.Duration
	cmd := &cobra.Command{
		Use:   "watch [NODE]...",
		Short: "Follow boots, step by step, until machines are Ready",
		Long: `Watch prints each step of boots as they are reached.

A server that restarts meanwhile is waited for. With nodes it ends when the newest boot of each has come to its end: Ready in its
cluster, or for a node without a cluster online. Boots that
began longer ago than --since do not count. It fails when that takes longer than
--timeout. Without nodes it follows all machines until it is interrupted.`,
		Example: `  drover power pxe m1c1n1,m1c2n1 && drover boot watch m1c1n1 m1c2n1
  drover boot watch --since 1h`,
		RunE: func(cmd *cobra.Command, nodes []string) error {
			w.nodes, w.out, w.from = nodes, cmd.OutOrStdout(), time.Now().Add(-since)
			w.boots = func(ctx context.Context, node string) ([]boots.Record, error) {
				return fetchBoots(c, ctx, node, watchLimit(node))
			}
			ctx := cmd.Context()
			if len(nodes) > 0 && timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			return w.run(ctx)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Minute, "how long to wait for nodes; 0: for ever")
	cmd.Flags().DurationVar(&since, "since", 5*time.Minute, "how long ago a boot that counts may have begun")
	cmd.Flags().DurationVar(&w.every, "interval", time.Second, "how often to ask the server")
	return cmd
}

// watchLimit is how many boots are asked for: the newest of a node, or as many
// as a room has machines.
func watchLimit(node string) int {
	if node != "" {
		return 1
	}
	return 1000
}

// watcher follows boots.
type watcher struct {
	nodes []string // empty: all
	from  time.Time
	every time.Duration
	out   io.Writer
	boots func(ctx context.Context, node string) ([]boots.Record, error)

	printed map[string]int // steps, by boot
}

// run asks again and again until every node is there.
func (w *watcher) run(ctx context.Context) error {
	for answered := false; ; {
		waiting, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !answered:
			return err
		case err != nil: // the server restarts; the machines boot on
			fmt.Fprintln(w.out, err)
		case len(w.nodes) > 0 && len(waiting) == 0:
			return nil
		default:
			answered = true
		}
		if wait.Sleep(ctx, w.every) == nil {
			continue
		}
		if len(w.nodes) == 0 {
			return nil // interrupted, as it has to be
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("not Ready in time: %s", strings.Join(waiting, ", "))
		}
		return ctx.Err()
	}
}

// look prints what is new, and returns the nodes that are still on their way.
func (w *watcher) look(ctx context.Context) (waiting []string, err error) {
	nodes := w.nodes
	if len(nodes) == 0 {
		nodes = []string{""}
	}
	for _, node := range nodes {
		boots, err := w.boots(ctx, node)
		if err != nil {
			return nodes, err
		}
		arrived := false
		for _, b := range slices.Backward(boots) { // the newest come first
			if !b.Started.Before(w.from) {
				w.print(b)
				arrived = b.Ended()
			}
		}
		if !arrived {
			waiting = append(waiting, node)
		}
	}
	return waiting, nil
}

func (w *watcher) print(b boots.Record) {
	for _, s := range b.Steps[min(w.printed[b.ID], len(b.Steps)):] {
		text := s.Detail
		if s.Error != "" {
			text = "error: " + s.Error
		}
		line := fmt.Sprintf("%s %-20s %6s s  %-11s %s", s.Time.Local().Format(time.TimeOnly), b.Node, seconds(b, s), s.Step, text)
		fmt.Fprintln(w.out, strings.TrimRight(line, " "))
	}
	w.printed[b.ID] = len(b.Steps)
}
