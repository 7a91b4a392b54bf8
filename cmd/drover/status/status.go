// Package status has the command drover status: the farm of a running server on one screen.
// It prints what the REST API tells.
package status

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/printable"
	"drover/pools"
	"drover/web/client"
)

// NewCommand returns the command drover status.
func NewCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the farm of a running server on one screen",
		Long: `Status shows the nodes by state and pool, the stuck ones by cause, images, leases, unknown
machines, and what is not ready in the server: config, clusters, images, loaders, disks.
It fails if the server is not ready.`,
		Example: "  drover status\n  drover status -o json",
		Args:    cobra.NoArgs,
	}
	var output cli.Output
	output.Flag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := cli.Get(cmd.Context(), c, client.Status)
		if err != nil {
			return err
		}
		if err := output.Print(cmd, o, func(w io.Writer) error { return text(w, &o) }); err != nil {
			return err
		}
		if !o.Ready {
			return errors.New("the server is not ready")
		}
		return nil
	}
	c.Flags(cmd)
	return cmd
}

// What fits on a screen.
const (
	maxPools  = 15
	maxCauses = 5
	maxNames  = 5
)

func text(w io.Writer, o *pools.Overview) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(t, "%s\t%s\n", name, cli.OrDash(printable.Text(value))) }
	total := 0
	for _, n := range o.Nodes {
		total += n
	}
	ready := map[bool]string{true: "ready", false: "not ready"}[o.Ready]
	line("server", ready)
	if o.Pin != "" {
		line("pin", o.Pin)
	}
	line("nodes", fmt.Sprintf("%d: %s", total, states(o.Nodes)))
	for _, p := range o.Pools[:min(len(o.Pools), maxPools)] {
		line("pool "+printable.Text(p.Name), fmt.Sprintf("%d: %s", p.Nodes, states(p.States)))
	}
	if n := len(o.Pools) - maxPools; n > 0 {
		line("", fmt.Sprintf("and %d more pools", n))
	}
	for _, c := range o.Stuck[:min(len(o.Stuck), maxCauses)] {
		names := strings.Join(c.Nodes[:min(len(c.Nodes), maxNames)], " ")
		if len(c.Nodes) > maxNames {
			names += " ..."
		}
		line("stuck", fmt.Sprintf("%d %s: %s", len(c.Nodes), c.Cause, names))
	}
	if n := len(o.Stuck) - maxCauses; n > 0 {
		line("", fmt.Sprintf("and %d more causes", n))
	}
	line("images", states(o.Images))
	if o.Outdated > 0 {
		line("outdated", fmt.Sprintf("%d with another generation of the image than their pool boots now: drover node list -l image.outdated=true", o.Outdated))
	}
	line("leases", states(o.Leases))
	line("unknown machines", fmt.Sprint(o.Unknown))
	for _, p := range o.Problems {
		kind := map[bool]string{true: "warning", false: "problem"}[p.Warning]
		line(kind, p.Part+": "+p.Problem)
	}
	return t.Flush()
}

// states returns counts as text, by name.
func states(counts map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(words, ", ")
}
