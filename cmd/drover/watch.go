package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/printable"
	"drover/internal/wait"
	"drover/pools/boots"
)

func newBootWatchCommand(c *cli.Client) *cobra.Command {
	w := watcher{printed: map[string]int{}, waiting: map[string]bool{}}
	var timeout, since time.Duration
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "watch [NODE]...",
		Short: "Follow boots, step by step, until machines are Ready",
		Long: `Watch prints each step of a boot when the machine reaches it.

With nodes it ends when the newest boot of each has ended: Ready in its cluster,
or online for a node without a cluster. It ignores boots that began longer ago
than --since, and fails after --timeout. Without nodes it follows all machines
until it is interrupted. It waits for a server that restarts. With -o json each step is
an object on a line of its own.`,
		Example: `  drover power pxe m1c1n1,m1c2n1 && drover boot watch m1c1n1 m1c2n1
  drover boot watch --since 1h`,
		RunE: func(cmd *cobra.Command, nodes []string) error {
			w.json = output.Format() == "json"
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
	output.Flag(cmd, "text", "json")
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Minute, "how long to wait for nodes; 0: for ever")
	cmd.Flags().DurationVar(&since, "since", 5*time.Minute, "how long ago a boot that counts may have begun")
	cmd.Flags().DurationVar(&w.every, "interval", time.Second, "how often to ask the server")
	return cmd
}

// watchLimit returns the number of boots to request: the newest of one node, or those of
// a thousand machines.
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
	json  bool // steps are objects
	boots func(ctx context.Context, node string) ([]boots.Record, error)

	printed map[string]int  // number of printed steps, by boot
	waiting map[string]bool // nodes of which a line says that they wait for their next boot
}

// run prints new steps until the boot of every node has ended.
func (w *watcher) run(ctx context.Context) error {
	for answered := false; ; {
		waiting, err := w.poll(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !answered:
			return err
		case err != nil: // the server restarts, and the boots continue
			if !w.json {
				fmt.Fprintln(w.out, err)
			}
		case len(w.nodes) > 0 && len(waiting) == 0:
			return nil
		default:
			answered = true
		}
		if wait.Sleep(ctx, w.every) == nil {
			continue
		}
		if len(w.nodes) == 0 {
			return nil // interrupted by the user: the normal end
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("not Ready in time: %s", strings.Join(waiting, ", "))
		}
		return ctx.Err()
	}
}

// poll prints the new steps, and returns the nodes whose boot has not ended.
func (w *watcher) poll(ctx context.Context) (waiting []string, err error) {
	nodes := w.nodes
	if len(nodes) == 0 {
		nodes = []string{""}
	}
	for _, node := range nodes {
		boots, err := w.boots(ctx, node)
		if err != nil {
			return nodes, err
		}
		w.explain(node, boots)
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

// explain prints, once, that a node has no boot that counts: its machine may be running, and the
// watch waits for the next boot.
func (w *watcher) explain(node string, all []boots.Record) {
	old := len(all) > 0 && all[0].Started.Before(w.from)
	if node == "" || w.json || w.waiting[node] || len(all) > 0 && !old {
		return
	}
	w.waiting[node] = true
	text := node + ": no boot yet, waiting for one"
	if old {
		text = fmt.Sprintf("%s: waiting for its next boot; the last one began at %s (--since takes older ones)", node, all[0].Started.Local().Format(time.DateTime))
	}
	fmt.Fprintln(w.out, printable.Text(text))
}

func (w *watcher) print(b boots.Record) {
	for _, s := range b.Steps[min(w.printed[b.ID], len(b.Steps)):] {
		text := s.Detail
		if s.Error != "" {
			text = "error: " + s.Error
		}
		line := fmt.Sprintf("%s %-20s %6s s  %-11s %s", s.Time.Local().Format(time.TimeOnly), b.Node, seconds(b, s), s.Step, text)
		if w.json {
			w.object(b, s)
			continue
		}
		fmt.Fprintln(w.out, strings.TrimRight(printable.Text(line), " "))
	}
	w.printed[b.ID] = len(b.Steps)
}

// object prints a step as a line of JSON.
func (w *watcher) object(b boots.Record, s boots.StepTime) {
	line, err := json.Marshal(struct {
		Boot string `json:"boot"`
		Node string `json:"node"`
		boots.StepTime
	}{b.ID, b.Node, s})
	if err == nil {
		_, _ = w.out.Write(append(printable.EscapeJSON(line), '\n')) // as for people: the watch goes on
	}
}
