package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/web/client"
)

func newPoolCommand() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "pool", Short: "List the pools of a running server"},
		newElementsCommand("pool", "NAME\tCLUSTER\tIMAGE\tNODES\tTAGS\tRANGE", client.Pools, func(p pools.PoolInfo) []any {
			ranges := ""
			if p.Range.First.IsValid() {
				ranges = p.Range.String()
			}
			return []any{p.Name, p.Cluster, p.Image, p.Nodes, strings.Join(p.Tags, ","), ranges}
		}))
}

func newTagCommand() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "tag", Short: "List the tags of a running server"},
		newElementsCommand("tag", "NAME\tNODES\tPOOLS", client.Tags, func(t pools.TagInfo) []any {
			return []any{t.Name, t.Nodes, strings.Join(t.Pools, ",")}
		}))
}

func newClusterListCommand() *cobra.Command {
	return newElementsCommand("cluster", "NAME\tNODES\tPOOLS\tENDPOINT", client.Clusters, func(c pools.ClusterInfo) []any {
		return []any{c.Name, c.Nodes, strings.Join(c.Pools, ","), c.Endpoint}
	})
}

// newElementsCommand makes the command that lists the elements of a farm of one kind.
func newElementsCommand[T any](kind, header string, path client.Path[[]T], row func(T) []any) *cobra.Command {
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
