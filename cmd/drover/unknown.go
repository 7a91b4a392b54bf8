package main

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/pools"
)

const unknownPath = "/api/v1/unknown"

func newUnknownCommand() *cobra.Command {
	c := &apiClient{}
	cmd := &cobra.Command{
		Use:   "unknown",
		Short: "List the machines that asked and that no node declares",
		Long: `Unknown works on what a running drover noted of machines that asked for an address
and that no node declares, over its REST API. drover keeps the last 4096 of
them. To make one a node, see drover node add.`,
		Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.apiFlags(cmd)
	cmd.AddCommand(newUnknownListCommand(c), newUnknownForgetCommand(c))
	return cmd
}

func newUnknownListCommand(c *apiClient) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List unknown machines, the one that asked last first",
		Example: "  drover unknown list\n  drover unknown list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			machines := []pools.Unknown{}
			if err := c.call(cmd.Context(), http.MethodGet, unknownPath, nil, &machines); err != nil {
				return err
			}
			return printAs(cmd.OutOrStdout(), output, machines, func(w io.Writer) error { return unknownTable(w, machines) })
		},
	}
	outputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

func unknownTable(w io.Writer, machines []pools.Unknown) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MAC\tLAST SEEN\tTIMES\tFIRMWARE\tCLASS\tCAME BY\tPOOL\tADDRESS")
	for _, u := range machines {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", u.MAC, u.Last.UTC().Format(time.DateTime), u.Count,
			orDash(string(u.Firmware)), orDash(u.Class), orDash(cameBy(u)), orDash(u.Pool), addrOrDash(u.Address))
	}
	return t.Flush()
}

// cameBy is the relay agent that a machine's packets came through, and what it
// told of the port.
func cameBy(u pools.Unknown) string {
	var words []string
	if u.Relay.IsValid() {
		words = append(words, u.Relay.String())
	}
	for _, s := range []string{u.Circuit, u.Remote} {
		if s != "" {
			words = append(words, s)
		}
	}
	return strings.Join(words, " ")
}

func addrOrDash(a netip.Addr) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}

func newUnknownForgetCommand(c *apiClient) *cobra.Command {
	return &cobra.Command{
		Use:     "forget MAC...",
		Short:   "Forget unknown machines; one that asks again comes back",
		Example: "  drover unknown forget 94:57:a5:d3:ec:f2",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if _, err := pools.ParseMAC(a); err != nil {
					return &exitError{exitUsage, err}
				}
			}
			return c.deleteEach(cmd, unknownPath, "forgot", args)
		},
	}
}
