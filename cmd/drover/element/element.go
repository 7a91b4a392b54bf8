// Package element has the commands that list and show the elements of a running server's farm:
// pools, tags and clusters, with their nodes.
package element

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/printable"
	"drover/pools"
	"drover/web/client"
)

// NewPoolCommand makes the command pool.
func NewPoolCommand() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "pool", Short: "List and show the pools of a running server"},
		newShowCommand("pool", client.Pools, func(p *pools.PoolInfo) []property {
			return []property{
				{"cluster", p.Cluster}, {"image", p.Image}, {"tags", strings.Join(p.Tags, " ")}, {"range", rangeText(p.Range)}, {"range6", rangeText(p.Range6)},
				{"catch-all", yes(p.CatchAll)}, {"ignore", yes(p.Ignore)},
			}
		}),
		newListCommand("pool", "NAME\tCLUSTER\tIMAGE\tNODES\tTAGS\tRANGE", client.Pools, func(p pools.PoolInfo) []any {
			return []any{p.Name, p.Cluster, p.Image, p.Nodes, strings.Join(p.Tags, ","), rangeText(p.Range)}
		}))
}

// NewTagCommand makes the command tag.
func NewTagCommand() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "tag", Short: "List and show the tags of a running server"},
		newShowCommand("tag", client.Tags, func(t *pools.TagInfo) []property {
			return []property{{"pools", strings.Join(t.Pools, " ")}}
		}),
		newListCommand("tag", "NAME\tNODES\tPOOLS", client.Tags, func(t pools.TagInfo) []any {
			return []any{t.Name, t.Nodes, strings.Join(t.Pools, ",")}
		}))
}

// NewClusterShowCommand makes the command cluster show.
func NewClusterShowCommand() *cobra.Command {
	return newShowCommand("cluster", client.Clusters, func(c *pools.ClusterInfo) []property {
		return []property{{"endpoint", c.Endpoint}, {"hosted", yes(c.Hosted)}, {"pools", strings.Join(c.Pools, " ")}}
	})
}

// NewClusterListCommand makes the command cluster list.
func NewClusterListCommand() *cobra.Command {
	return newListCommand("cluster", "NAME\tNODES\tPOOLS\tENDPOINT", client.Clusters, func(c pools.ClusterInfo) []any {
		return []any{c.Name, c.Nodes, strings.Join(c.Pools, ","), c.Endpoint}
	})
}

// newListCommand makes the command that lists the elements of a farm of one kind.
func newListCommand[T any](kind, header string, path client.Path[[]T], row func(T) []any) *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List each " + kind + " of a running server, with the number of its nodes",
		Example: "  drover " + kind + " list\n  drover " + kind + " list --sort -nodes\n  drover " + kind + " list -o json",
		Args:    cobra.NoArgs,
	}
	var order cli.Order
	cli.Show(cmd, "table", func(ctx context.Context, _ []string) ([]T, error) {
		by, err := order.Query()
		if err != nil {
			return nil, err
		}
		return cli.Get(ctx, c, path, "sort", by)
	}, func(w io.Writer, all []T) error { return cli.Table(w, all, header, row) })
	order.Flag(cmd, "name", "nodes")
	c.Flags(cmd)
	return cmd
}

// property is a property of an element, as text; an empty value is left out.
type property struct{ name, value string }

// shown is an element with the nodes that it has.
type shown[T any] struct {
	Element *T       `json:"element"`
	Nodes   []string `json:"nodes"`
}

// newShowCommand makes the command that shows an element of a farm, and its nodes.
func newShowCommand[T any](kind string, path client.Path[[]T], properties func(*T) []property) *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a " + kind + " of a running server, and the nodes that have it",
		Example: "  drover " + kind + " show NAME\n  drover " + kind + " show NAME -o 'jsonpath={.nodes}'",
		Args:    cobra.ExactArgs(1),
	}
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (s shown[T], err error) {
		all, err := cli.Get(ctx, c, path, "name", args[0])
		if err != nil {
			return s, err
		}
		if len(all) != 1 || strings.Contains(args[0], ",") {
			return s, fmt.Errorf("no such %s: %q (drover %s list)", kind, args[0], kind)
		}
		nodes, err := cli.Get(ctx, c, client.Nodes, kind, args[0], "sort", "name")
		s = shown[T]{&all[0], []string{}} // [] rather than null
		for _, n := range nodes {
			s.Nodes = append(s.Nodes, n.Name)
		}
		return s, err
	}, func(w io.Writer, s shown[T]) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, p := range append(properties(s.Element), property{"nodes", fmt.Sprint(len(s.Nodes))}) {
			if p.value != "" {
				fmt.Fprintf(t, "%s\t%s\n", p.name, printable.Text(p.value))
			}
		}
		for _, name := range s.Nodes {
			fmt.Fprintf(t, "\t%s\n", printable.Text(name))
		}
		return t.Flush()
	})
	c.Flags(cmd)
	return cmd
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func rangeText(r pools.Range) string {
	if !r.First.IsValid() {
		return ""
	}
	return r.String()
}
