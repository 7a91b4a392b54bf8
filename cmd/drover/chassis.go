package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/pools"
	"drover/pools/wait"
)

const (
	chassisPath = "/api/v1/chassis"
	auditPath   = "/api/v1/audit"
)

func newChassisCommand() *cobra.Command {
	c := &apiClient{}
	cmd := &cobra.Command{
		Use:   "chassis",
		Short: "See and ask the chassis whose nodes a running server keeps",
		Args:  noSubcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.apiFlags(cmd)
	cmd.AddCommand(newChassisListCommand(c), newChassisSyncCommand(c))
	return cmd
}

func newChassisListCommand(c *apiClient) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the chassis of the config, and what became of asking them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "table"); err != nil {
				return err
			}
			all, err := c.chassis(cmd.Context())
			if err != nil {
				return err
			}
			return printAs(cmd.OutOrStdout(), output, all, func(w io.Writer) error { return chassisTable(w, all, time.Now()) })
		},
	}
	outputFlag(cmd, &output, "table", "json", "yaml")
	return cmd
}

func (c *apiClient) chassis(ctx context.Context) (all []pools.ChassisStatus, err error) {
	return all, c.call(ctx, http.MethodGet, chassisPath, nil, &all)
}

func chassisTable(w io.Writer, all []pools.ChassisStatus, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHASSIS\tADDRESS\tVIA\tEVERY\tNODES\tLAST GOOD\tSTATE")
	for _, c := range all {
		every, good := "-", "never"
		if c.Interval > 0 {
			every = c.Interval.String()
		}
		if !c.Good.IsZero() {
			good = now.Sub(c.Good).Round(time.Second).String() + " ago"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", c.Name, c.Address, c.Via, every, c.Nodes, good, chassisState(c))
	}
	return t.Flush()
}

// chassisState describes the state of a chassis.
func chassisState(c pools.ChassisStatus) string {
	switch {
	case c.Asking:
		return "asking"
	case c.Stopped:
		return "given up: " + c.Error
	case c.Error != "":
		return c.Error
	case c.Last.IsZero():
		return "not asked yet"
	}
	var words []string
	for _, kind := range []string{"new", "changed", "same", "missing", "incomplete", "conflict"} {
		if n := c.Counts[kind]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(words, ", ")
}

func newChassisSyncCommand(c *apiClient) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sync NAME...",
		Short: "Ask chassis now which nodes they hold, and store them",
		Long: `Sync has the server ask chassis of its config now, and waits for it. Nodes are
added and changed, and none is removed. A chassis that was given up, because it
refused the login, is tried once more.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			var errs []error
			for _, name := range names {
				if err := c.syncOne(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), name); err != nil {
					errs = append(errs, err)
				}
			}
			if len(errs) > 0 && len(errs) < len(names) {
				return &exitError{exitPartly, errors.Join(errs...)}
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Minute, "how long to wait")
	return cmd
}

// syncOne lets the server read one chassis, and waits for the end.
func (c *apiClient) syncOne(ctx context.Context, out, errs io.Writer, name string) error {
	last := time.Time{}
	before, err := c.chassis(ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(before, func(s pools.ChassisStatus) bool { return s.Name == name }); i >= 0 {
		last = before[i].Last
	}
	if err := c.call(ctx, http.MethodPost, chassisPath+"/"+url.PathEscape(name)+"/sync", nil, nil); err != nil {
		return err
	}
	for {
		all, err := c.chassis(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(s pools.ChassisStatus) bool { return s.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("%s is not in the config any more", name)
		case all[i].Last.After(last) && !all[i].Asking:
			for _, p := range all[i].Problems {
				fmt.Fprintf(errs, "drover: %s: %s\n", name, p)
			}
			if all[i].Error != "" {
				return fmt.Errorf("%s: %s", name, all[i].Error)
			}
			fmt.Fprintf(out, "%s: %d nodes: %s\n", name, all[i].Nodes, chassisState(all[i]))
			return nil
		}
		if wait.Sleep(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("%s did not answer in time (drover chassis list says more)", name)
		}
	}
}

func newAuditCommand() *cobra.Command {
	c := &apiClient{}
	var output, node string
	limit := 50
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed nodes and switched machines",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "table"); err != nil {
				return err
			}
			query := url.Values{"limit": {fmt.Sprint(limit)}}
			if node != "" {
				query.Set("node", node)
			}
			var all []pools.AuditEntry
			if err := c.call(cmd.Context(), http.MethodGet, auditPath+"?"+query.Encode(), nil, &all); err != nil {
				return err
			}
			return printAs(cmd.OutOrStdout(), output, all, func(w io.Writer) error {
				t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				fmt.Fprintln(t, "TIME\tWHO\tACTION\tNODE\tJOB\tRESULT")
				for _, e := range all {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Time.UTC().Format(time.DateTime), e.Who, e.Action, orDash(e.Node), orDash(e.Job), e.Result)
				}
				return t.Flush()
			})
		},
	}
	c.apiFlags(cmd)
	outputFlag(cmd, &output, "table", "json", "yaml")
	cmd.Flags().StringVar(&node, "node", "", "only what was done to this node")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many at most")
	return cmd
}
