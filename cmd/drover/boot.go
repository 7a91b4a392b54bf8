package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools/boots"
)

const bootsPath = "/api/v1/boots"

func newBootCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "boot",
		Short: "Follow the boots of machines on a running server",
		Args:  cli.NoSubcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.Flags(cmd)
	cmd.AddCommand(newBootListCommand(c), newBootShowCommand(c), newBootWatchCommand(c))
	return cmd
}

func newBootListCommand(c *cli.Client) *cobra.Command {
	var output, node string
	limit := 50
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List boots, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output, "table"); err != nil {
				return err
			}
			boots, err := fetchBoots(c, cmd, node, limit)
			if err != nil {
				return err
			}
			return cli.PrintTable(cmd.OutOrStdout(), output, boots, func(w io.Writer) error { return bootTable(w, boots) })
		},
	}
	cli.OutputFlag(cmd, &output, "table", "json", "yaml")
	cmd.Flags().StringVar(&node, "node", "", "only the boots of this node")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many at most")
	return cmd
}

func fetchBoots(c *cli.Client, cmd *cobra.Command, node string, limit int) ([]boots.Record, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if node != "" {
		query.Set("node", node)
	}
	boots := []boots.Record{}
	return boots, c.Call(cmd.Context(), http.MethodGet, bootsPath+"?"+query.Encode(), nil, &boots)
}

func bootTable(w io.Writer, boots []boots.Record) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STARTED\tNODE\tMAC\tCLUSTER\tSTEP\tAFTER\tERROR")
	for _, b := range boots {
		step, after := "-", "-"
		if s, ok := b.Furthest(); ok {
			step, after = string(s.Step), seconds(b, s)+" s"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.Started.UTC().Format(time.DateTime), b.Node, b.MAC, cli.OrDash(b.Cluster), step, after, trouble(b))
	}
	return t.Flush()
}

// trouble is what keeps a boot: an error, or that it makes no progress.
func trouble(b boots.Record) string {
	switch {
	case b.Error != "":
		return b.Error
	case b.Stuck == nil:
		return "-"
	case b.Stuck.Usual == 0:
		return fmt.Sprintf("stuck after %s", b.Stuck.After)
	}
	return fmt.Sprintf("stuck after %s, where the next step usually takes %.1f s", b.Stuck.After, b.Stuck.Usual.D().Seconds())
}

func newBootShowCommand(c *cli.Client) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show NODE",
		Short: "Show the timeline of a node's newest boot",
		Long: `Show prints each step of the newest boot of a node with the seconds since the
first DISCOVER of its firmware, and since the step before.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(output, "text"); err != nil {
				return err
			}
			boots, err := fetchBoots(c, cmd, args[0], 1)
			if err != nil {
				return err
			}
			if len(boots) == 0 {
				return fmt.Errorf("no boot of node %q is known", args[0])
			}
			return cli.PrintTable(cmd.OutOrStdout(), output, boots[0], func(w io.Writer) error { return timeline(w, boots[0]) })
		},
	}
	cli.OutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

func timeline(w io.Writer, b boots.Record) error {
	fmt.Fprintf(w, "%s (%s), image %s, cluster %s, started %s UTC\n\n", b.Node, b.MAC, b.Image, cli.OrDash(b.Cluster), b.Started.UTC().Format(time.DateTime))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, s := range b.Steps {
		text := s.Detail
		if s.Error != "" {
			text = "error: " + s.Error
		}
		// The last cell of a line has no tab behind it and so keeps its place.
		fmt.Fprintf(t, "%s s\t%s\t  %s\n", seconds(b, s), took(b, s), strings.TrimSpace(fmt.Sprintf("%-11s %s", s.Step, text)))
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

// took is how long a step took.
func took(b boots.Record, s boots.StepTime) string {
	d, ok := b.Took(s)
	if !ok || s.Error != "" {
		return ""
	}
	return "+" + strconv.FormatFloat(d.Seconds(), 'f', 1, 64)
}

// seconds is when a step was reached, from the first DISCOVER on.
func seconds(b boots.Record, s boots.StepTime) string {
	return strconv.FormatFloat(s.Time.Sub(b.Started).Seconds(), 'f', 1, 64)
}
