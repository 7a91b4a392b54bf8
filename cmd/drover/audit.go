package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
)

const auditPath = "/api/v1/audit"

func newAuditCommand() *cobra.Command {
	c := &cli.Client{}
	var output, node string
	limit := 50
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed nodes and switched machines",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output, "table"); err != nil {
				return err
			}
			query := url.Values{"limit": {fmt.Sprint(limit)}}
			if node != "" {
				query.Set("node", node)
			}
			var all []pools.AuditEntry
			if err := c.Call(cmd.Context(), http.MethodGet, auditPath+"?"+query.Encode(), nil, &all); err != nil {
				return err
			}
			return cli.PrintTable(cmd.OutOrStdout(), output, all, func(w io.Writer) error {
				t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				fmt.Fprintln(t, "TIME\tWHO\tACTION\tNODE\tJOB\tRESULT")
				for _, e := range all {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Time.UTC().Format(time.DateTime), e.Who, e.Action, cli.OrDash(e.Node), cli.OrDash(e.Job), e.Result)
				}
				return t.Flush()
			})
		},
	}
	c.Flags(cmd)
	cli.OutputFlag(cmd, &output, "table", "json", "yaml")
	cmd.Flags().StringVar(&node, "node", "", "only what was done to this node")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many at most")
	return cmd
}
