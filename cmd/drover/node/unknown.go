package node

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/web/client"
)

func newUnknownCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "unknown",
		Short: "List and adopt machines that asked for an address and that no node declares",
		Long: `Unknown works, over the REST API, on the machines that asked a running drover for
an address and that no node declares. drover keeps the last 4096 of them. To make
them nodes, use drover unknown adopt.`,
	}
	c.Flags(cmd)
	return cli.Group(cmd, newUnknownListCommand(c), newUnknownDescribeCommand(c), newUnknownForgetCommand(c), newUnknownAdoptCommand(c))
}

func newUnknownListCommand(c *cli.Client) *cobra.Command {
	var order cli.Order
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List unknown machines, most recent first",
		Example: "  drover unknown list\n  drover unknown list --sort first\n  drover unknown list -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "text", func(ctx context.Context, _ []string) ([]pools.Unknown, error) {
		by, err := order.Query()
		if err != nil {
			return nil, err
		}
		return cli.Get(ctx, c, client.Unknown, "sort", by)
	}, unknownTable)
	order.Flag(cmd, "-last", "mac", "pool", "firmware", "address", "first", "last")
	return cmd
}

func unknownTable(w io.Writer, machines []pools.Unknown) error {
	if slices.ContainsFunc(machines, func(u pools.Unknown) bool { return u.Retired != "" }) {
		return cli.Table(w, machines, "MAC\tWAS\tLAST SEEN\tTIMES\tFIRMWARE\tCLASS\tCAME BY\tPOOL\tADDRESS", func(u pools.Unknown) []any {
			return []any{u.MAC, u.Retired, u.Last, u.Count, u.Firmware, u.Class, cameBy(u), u.Pool, u.Address}
		})
	}
	return cli.Table(w, machines, "MAC\tLAST SEEN\tTIMES\tFIRMWARE\tCLASS\tCAME BY\tPOOL\tADDRESS", func(u pools.Unknown) []any {
		return []any{u.MAC, u.Last, u.Count, u.Firmware, u.Class, cameBy(u), u.Pool, u.Address}
	})
}

// cameBy returns the relay agent of a machine's packets, with its circuit and remote
// identifiers, as text.
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

func newUnknownDescribeCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe MAC",
		Short:   "Show the hardware that an unknown machine reported",
		Example: "  drover unknown describe 94:57:a5:d3:ec:f2\n  drover unknown describe 94:57:a5:d3:ec:f2 -o json",
		Args:    cobra.ExactArgs(1),
	}
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (pools.Unknown, error) {
		mac, err := pools.ParseMAC(args[0])
		if err != nil {
			return pools.Unknown{}, &cli.Error{Code: cli.Usage, Err: err}
		}
		all, err := cli.Get(ctx, c, client.Unknown)
		if err != nil {
			return pools.Unknown{}, err
		}
		for _, u := range all {
			if u.MAC == mac {
				return u, nil
			}
		}
		return pools.Unknown{}, fmt.Errorf("no unknown machine has the MAC %s (drover unknown list shows all)", mac)
	}, describeUnknown)
	return cmd
}

// describeUnknown prints a machine, one value to a line.
func describeUnknown(w io.Writer, u pools.Unknown) error {
	rows := [][]any{
		{"MAC", u.MAC}, {"first seen", u.First}, {"last seen", u.Last}, {"times", u.Count}, {"firmware", u.Firmware},
		{"class", u.Class}, {"came by", cameBy(u)}, {"pool", u.Pool}, {"address", u.Address},
	}
	if u.Retired != "" {
		rows = append(rows, []any{"was", "node " + u.Retired + ", which the config has lost: declare it again, and it is as it was"})
	}
	v := u.Inventory
	if v == nil {
		rows = append(rows, []any{"hardware", "not reported: it has not run drover-init"})
	} else {
		rows = append(rows, []any{"vendor", v.Vendor}, []any{"product", v.Product}, []any{"serial", v.Serial}, []any{"UUID", v.UUID}, []any{"chassis", v.Chassis},
			[]any{"slot", v.Slot}, []any{"BIOS", v.BIOS}, []any{"CPU", fmt.Sprintf("%d x %s", v.CPUs, v.CPU)}, []any{"memory", fmt.Sprintf("%.1f GiB", float64(v.Memory)/(1<<30))})
		for _, d := range v.Disks {
			rows = append(rows, []any{"disk " + d.Name, strings.TrimSpace(fmt.Sprintf("%.1f GB %s %s", float64(d.Size)/1e9, d.Model, d.Serial))})
		}
		for _, n := range v.NICs {
			link := "no link"
			if n.Link {
				link = "link"
			}
			if n.Link && n.Speed > 0 {
				link = fmt.Sprintf("link, %d Mbit/s", n.Speed)
			}
			rows = append(rows, []any{"network card " + n.Name, strings.Join(strings.Fields(n.MAC+" "+n.Driver+" "+link), " ")})
			if at := n.LLDP; at != nil {
				rows = append(rows, []any{"switch of " + n.Name, strings.Join(strings.Fields(at.String()+" "+at.Description), " ")})
			}
		}
	}
	return cli.Table(w, rows, "FIELD\tVALUE", func(r []any) []any { return r })
}

func newUnknownForgetCommand(c *cli.Client) *cobra.Command {
	return c.DeleteEach(&cobra.Command{
		Use:     "forget MAC...",
		Short:   "Forget unknown machines; one that asks again returns",
		Example: "  drover unknown forget 94:57:a5:d3:ec:f2",
		Args:    cobra.MinimumNArgs(1),
	}, client.ForgetUnknown, "forgot", func(mac string) error {
		_, err := pools.ParseMAC(mac)
		return err
	})
}
