package power

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/printable"
	"drover/pools"
	"drover/web/client"
)

func newAuditCommand() *cobra.Command {
	c := &cli.Client{}
	var node string
	limit := 50
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Show who changed nodes and switched machines",
		Example: "  drover audit --node m1c30\n  drover audit --limit 500 -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "table", func(ctx context.Context, _ []string) ([]pools.AuditEntry, error) {
		return cli.Get(ctx, c, client.Audit, "limit", strconv.Itoa(limit), "node", node)
	}, auditTable)
	c.Flags(cmd)
	cmd.Flags().StringVar(&node, "node", "", "only what was done to this node")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many at most")
	return cmd
}

func auditTable(w io.Writer, all []pools.AuditEntry) error {
	return cli.Table(w, all, "TIME\tWHO\tACTION\tNODE\tJOB\tRESULT\tCHANGES", func(e pools.AuditEntry) []any {
		return []any{e.Time, e.Actor, e.Action, e.Node, e.Job, e.Result, changed(e.Changes)}
	})
}

// changed returns changes as text: "pool: web -> db, tags: - -> [fast]".
func changed(all []pools.AuditChange) string {
	var words []string
	for _, c := range all {
		words = append(words, fmt.Sprintf("%s: %s -> %s", c.Field, cmp.Or(c.Before, "-"), cmp.Or(c.After, "-")))
	}
	return printable.Line(strings.Join(words, ", "), maxChanges)
}

// maxChanges bounds the changes in a row, in bytes. With -o json all are there.
const maxChanges = 160
