package main

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
)

func newLeaseCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "List and end the address leases of a running server",
		Long: `Lease works on the addresses that a running drover leases, over its REST API:
those of catch-all pools, those of nodes that are not known by their MAC, and
those that machines still use after the config gave them another. An address
that somebody was found to use whom drover does not know is in quarantine for
a while; it is listed as declined.`,
		Args: cli.NoSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.Flags(cmd)
	cmd.AddCommand(newLeaseListCommand(c), newLeaseReleaseCommand(c))
	return cmd
}

func newLeaseListCommand(c *cli.Client) *cobra.Command {
	var output, pool, state string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the leases by address",
		Example: `  drover lease list
  drover lease list --pool catchall --state active
  drover lease list --state declined -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output, "text"); err != nil {
				return err
			}
			if state != "" && !slices.Contains(leaseStates(), state) {
				return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("unknown state %q (one of %s)", state, strings.Join(leaseStates(), ", "))}
			}
			leases, err := fetchLeases(c, cmd, pool, state)
			if err != nil {
				return err
			}
			return cli.PrintTable(cmd.OutOrStdout(), output, leases, func(w io.Writer) error { return leaseTable(w, leases, time.Now()) })
		},
	}
	cli.OutputFlag(cmd, &output, "text", "json", "yaml")
	cmd.Flags().StringVar(&pool, "pool", "", "only the leases of this pool")
	cmd.Flags().StringVar(&state, "state", "", "only those that are "+strings.Join(leaseStates(), "|"))
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(leaseStates(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func leaseStates() []string {
	return []string{string(pools.LeaseActive), string(pools.LeaseExpired), string(pools.LeaseReleased), string(pools.LeaseDeclined)}
}

func fetchLeases(c *cli.Client, cmd *cobra.Command, pool, state string) ([]cli.Lease, error) {
	query := url.Values{}
	if pool != "" {
		query.Set("pool", pool)
	}
	if state != "" {
		query.Set("state", state)
	}
	leases := []cli.Lease{}
	return leases, c.Call(cmd.Context(), http.MethodGet, cli.LeasesPath+"?"+query.Encode(), nil, &leases)
}

func leaseTable(w io.Writer, leases []cli.Lease, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ADDRESS\tMAC\tNODE\tPOOL\tSTATE\tENDS\tWHY")
	for _, l := range leases {
		ends := l.Expires.UTC().Format(time.DateTime)
		if left := l.Expires.Sub(now); left > 0 && l.State != pools.LeaseReleased {
			ends = "in " + left.Round(time.Second).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Address, l.MAC, cli.OrDash(l.Node), cli.OrDash(l.Pool), l.State, ends, cli.OrDash(l.Declined))
	}
	return t.Flush()
}

func newLeaseReleaseCommand(c *cli.Client) *cobra.Command {
	return &cobra.Command{
		Use:   "release ADDRESS...",
		Short: "End leases, or lift the quarantine of addresses",
		Long: `Release frees addresses. A machine that still uses one is not told: it finds out
when it renews, and until then another may get the same address. So release the
address of a machine that is gone, or one in quarantine that nobody uses.`,
		Example: "  drover lease release 10.28.72.10",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if _, err := netip.ParseAddr(a); err != nil {
					return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("%q is not an IP address", a)}
				}
			}
			return c.DeleteEach(cmd, cli.LeasesPath, "released", args)
		},
	}
}
