package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"drover/pools"
	"drover/web/client"
)

// AnySuch returns an error if the server has none of these nodes, or not that pool: an empty list of
// what belongs to them is then no answer. Without names, or a pool, there is nothing to look for.
func AnySuch(ctx context.Context, c *Client, names []string, pool string) error {
	if pool != "" {
		all, err := Get(ctx, c, client.Pools)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(p pools.PoolInfo) bool { return p.Name == pool }) {
			return fmt.Errorf("no such pool: %s", pool)
		}
	}
	if len(names) == 0 {
		return nil
	}
	all, err := Get(ctx, c, client.Nodes, "catchall", "true", "name", strings.Join(names, ","))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no such node: %s", strings.Join(names, " "))
	}
	return err
}
