package power

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/printable"
	"drover/internal/wait"
	"drover/pools"
	"drover/web/client"
)

// auditEvery is the interval of the questions of --follow.
const auditEvery = 2 * time.Second

// followed is how many entries a question of --follow asks for; for all if that many are new.
const followed = 1000

// auditOf are the flags of drover audit.
type auditOf struct {
	client    cli.Client
	node, who string
	limit     int
	since     time.Duration
	follow    bool
}

func newAuditCommand() *cobra.Command {
	a := &auditOf{}
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Show who changed nodes and switched machines",
		Example: "  drover audit --node m1c30\n  drover audit --since 2d --who alice\n  drover audit --follow\n  drover audit --limit 500 -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "table", func(ctx context.Context, _ []string) ([]pools.AuditEntry, error) { return a.list(ctx) }, auditTable)
	show := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case !a.follow:
			return show(cmd, args)
		case cmd.Flags().Changed("output"):
			return &cli.Error{Code: cli.Usage, Err: errors.New("--follow prints a table: leave out --output")}
		}
		return a.watch(cmd)
	}
	a.client.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&a.node, "node", "", "only what was done to this node")
	f.StringVar(&a.who, "who", "", "only what was done by those whose name has this text, such as alice or token ci")
	f.IntVar(&a.limit, "limit", 50, "how many at most")
	cli.DurationFlag(f, &a.since, "since", 0, "only what was done in this time, such as 12h or 7d")
	f.BoolVarP(&a.follow, "follow", "f", false, "go on with each new entry, the newest last, until interrupted")
	return cmd
}

// list returns the newest entries that the flags choose. The server chooses by node alone, so that
// all that it has are asked for where other flags choose.
func (a *auditOf) list(ctx context.Context) ([]pools.AuditEntry, error) {
	limit := a.limit
	if a.who != "" || a.since > 0 {
		limit = pools.MaxAudit
	}
	all, err := cli.Get(ctx, &a.client, client.Audit, "limit", strconv.Itoa(limit), "node", a.node)
	if err == nil && len(all) == 0 && a.node != "" {
		err = cli.AnySuch(ctx, &a.client, []string{a.node}, "")
	}
	if err != nil {
		return nil, err
	}
	begin := time.Now().Add(-a.since)
	all = slices.DeleteFunc(all, func(e pools.AuditEntry) bool {
		return !strings.Contains(strings.ToLower(e.Actor), strings.ToLower(a.who)) || a.since > 0 && e.Time.Before(begin)
	})
	return all[:min(len(all), max(a.limit, 0))], nil
}

// watch prints the entries that there are, the newest last, and then each new one.
func (a *auditOf) watch(cmd *cobra.Command) error {
	var last time.Time
	answered := false
	for {
		all, err := a.list(cmd.Context())
		switch {
		case cmd.Context().Err() != nil:
			return nil // interrupted by the user: the normal end
		case err != nil && (!answered || cli.CodeOf(err) == cli.Refused):
			return err
		case err != nil: // a server that restarts
			fmt.Fprintln(cmd.ErrOrStderr(), "drover:", err)
		}
		if n := len(all); answered && n == a.limit && a.limit < pools.MaxAudit && all[n-1].Time.After(last) {
			a.limit = pools.MaxAudit // there may be more new ones
			continue
		}
		all = slices.DeleteFunc(all, func(e pools.AuditEntry) bool { return !e.Time.After(last) })
		slices.Reverse(all)
		for _, e := range all {
			fmt.Fprintln(cmd.OutOrStdout(), auditLine(&e))
			last = e.Time
		}
		answered, a.limit = answered || err == nil, followed
		if wait.Sleep(cmd.Context(), auditEvery) != nil {
			return nil
		}
	}
}

// auditLine is an entry in a line of its own.
func auditLine(e *pools.AuditEntry) string {
	words := []string{e.Time.UTC().Format(time.DateTime), e.Actor, e.Action, e.Node, e.Job, e.Result, changed(e.Changes)}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return printable.Line(strings.Join(words, "  "), maxLine)
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

// Limits in bytes. With -o json all is there.
const (
	maxChanges = 160 // of the changes in a row
	maxLine    = 1024
)
