package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
)

const unknownPath = "/api/v1/unknown"

func newUnknownCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "unknown",
		Short: "List the machines that asked and that no node declares",
		Long: `Unknown works on what a running drover noted of machines that asked for an address
and that no node declares, over its REST API. drover keeps the last 4096 of
them. To make one a node, see drover node add.`,
		Args: cli.NoSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.Flags(cmd)
	cmd.AddCommand(newUnknownListCommand(c), newUnknownForgetCommand(c))
	return cmd
}

func newUnknownListCommand(c *cli.Client) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List unknown machines, the one that asked last first",
		Example: "  drover unknown list\n  drover unknown list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output, "text"); err != nil {
				return err
			}
			machines := []pools.Unknown{}
			if err := c.Call(cmd.Context(), http.MethodGet, unknownPath, nil, &machines); err != nil {
				return err
			}
			return cli.PrintTable(cmd.OutOrStdout(), output, machines, func(w io.Writer) error { return unknownTable(w, machines) })
		},
	}
	cli.OutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

func unknownTable(w io.Writer, machines []pools.Unknown) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MAC\tLAST SEEN\tTIMES\tFIRMWARE\tCLASS\tCAME BY\tPOOL\tADDRESS")
	for _, u := range machines {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", u.MAC, u.Last.UTC().Format(time.DateTime), u.Count,
			cli.OrDash(string(u.Firmware)), cli.OrDash(u.Class), cli.OrDash(cameBy(u)), cli.OrDash(u.Pool), cli.AddrOrDash(u.Address))
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

func newUnknownForgetCommand(c *cli.Client) *cobra.Command {
	return &cobra.Command{
		Use:     "forget MAC...",
		Short:   "Forget unknown machines; one that asks again comes back",
		Example: "  drover unknown forget 94:57:a5:d3:ec:f2",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if _, err := pools.ParseMAC(a); err != nil {
					return &cli.Error{Code: cli.Usage, Err: err}
				}
			}
			return c.DeleteEach(cmd, unknownPath, "forgot", args)
		},
	}
}
