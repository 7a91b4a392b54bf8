package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/web/client"
)

func newLeaseCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "List and end the address leases of a running server",
		Long: `Lease works on the addresses that a running drover leases, over its REST API:
those of catch-all pools, those of nodes that have no MAC in the config, and those
that machines still use after the config gave them another. An address that an
unknown device uses is in quarantine for an hour, and listed as declined.`,
	}
	c.Flags(cmd)
	return cli.Group(cmd, newLeaseListCommand(c), newLeaseReleaseCommand(c))
}

func newLeaseListCommand(c *cli.Client) *cobra.Command {
	var pool, state string
	var order cli.Order
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the leases by address",
		Example: `  drover lease list
  drover lease list --pool catchall --state active
  drover lease list --sort -expires
  drover lease list --state declined -o json`,
		Args: cobra.NoArgs,
	}
	cli.Show(cmd, "text", func(ctx context.Context, _ []string) ([]pools.LeaseInfo, error) {
		if state != "" && !slices.Contains(pools.LeaseStates(), state) {
			return nil, &cli.Error{Code: cli.Usage, Err: fmt.Errorf("unknown state %q (one of %s)", state, strings.Join(pools.LeaseStates(), ", "))}
		}
		by, err := order.Query()
		if err != nil {
			return nil, err
		}
		all, err := cli.Get(ctx, c, client.Leases, "pool", pool, "state", state, "sort", by)
		if err == nil && len(all) == 0 {
			err = cli.AnySuch(ctx, c, nil, pool)
		}
		return all, err
	}, leaseTable)
	order.Flag(cmd, "address", "pool", "state", "node", "mac", "expires")
	cmd.Flags().StringVar(&pool, "pool", "", "only the leases of this pool")
	cmd.Flags().StringVar(&state, "state", "", "only those that are "+strings.Join(pools.LeaseStates(), "|"))
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(pools.LeaseStates(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func leaseTable(w io.Writer, leases []pools.LeaseInfo) error {
	now := time.Now()
	return cli.Table(w, leases, "ADDRESS\tMAC\tNODE\tPOOL\tSTATE\tENDS\tWHY", func(l pools.LeaseInfo) []any {
		ends := l.Expires.UTC().Format(time.DateTime)
		if left := l.Expires.Sub(now); left > 0 && l.State != pools.LeaseReleased {
			ends = "in " + left.Round(time.Second).String()
		}
		return []any{l.Address, l.MAC, l.Node, l.Pool, l.State, ends, l.Declined}
	})
}

func newLeaseReleaseCommand(c *cli.Client) *cobra.Command {
	return c.DeleteEach(&cobra.Command{
		Use:   "release ADDRESS...",
		Short: "End leases, or lift the quarantine of addresses",
		Long: `Release frees addresses. A machine that still uses one does not notice until it
renews, and until then another may get the same address. So release the
address of a machine that is gone, or one in quarantine that no device uses.`,
		Example: "  drover lease release 10.28.72.10\n  drover lease release 10.28.72.10 10.28.72.11 -o json",
		Args:    cobra.MinimumNArgs(1),
	}, client.EndLease, "released", func(address string) error {
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("%q is not an IP address", address)
		}
		return nil
	})
}
