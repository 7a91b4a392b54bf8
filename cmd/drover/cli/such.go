package cli

import (
	"context"
	"fmt"
	"net/netip"
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

// NodeNamed returns the name of the node that an operator means by its name, by a MAC or by an address.
func NodeNamed(ctx context.Context, c *Client, text string) (string, error) {
	filter := []string{"catchall", "true"}
	if mac, err := pools.ParseMAC(text); err == nil && strings.ContainsAny(text, ":-.") {
		filter = append(filter, "mac", mac.String())
	} else if addr, err := netip.ParseAddr(text); err == nil {
		filter = append(filter, "address", addr.String())
	} else {
		return text, nil
	}
	all, err := Get(ctx, c, client.Nodes, filter...)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", fmt.Errorf("no node has %s", text)
	}
	return all[0].Name, nil
}
