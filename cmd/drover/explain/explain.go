// Package explain implements drover explain. The command shows the Plan of a machine,
// the origin of each value, and the DHCP reply byte for byte, which package dhcp/explain
// finds. It sends no packet.
package explain

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/dhcp/explain"
	"drover/pools"
	"drover/web/client"
)

// NewCommand returns the command drover explain.
func NewCommand() *cobra.Command {
	e := explainer{Server: explain.Server{Now: time.Now}}
	var client Client
	var output cli.Output
	var live bool
	cmd := &cobra.Command{
		Use:   "explain MAC | --request FILE",
		Short: "Show what a machine would get, and why",
		Long: `Explain prints the Plan for a MAC: name, address, pool, cluster, image, loader,
kernel arguments, DHCP options, files, labels, taints, each with the line of the
config that set it. Then it prints the DHCP reply to such a machine's DISCOVER,
option by option. --request shows the reply to a captured DHCP request instead,
given as bytes or in hex. A machine with IPv6 only, and one of --ipv6, is explained
by the DHCPv6 reply to its SOLICIT. If the server would not answer, explain says why
and fails.

It reads the config file and sends nothing. With --live it also reads, from the
running server, the nodes that were added over the REST API, the leases, and what
unknown machines have reported of their hardware. Without --live, an address of a
range is the one that a server without leases would give.`,
		Example: `  drover explain -c drover.yaml 94:57:a5:d3:ec:f2
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2 --arch bios -o yaml
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2 --live
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2 --arch os --relay 10.29.0.1 --circuit-id eth7
  drover explain -c drover.yaml --request discover.hex -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := client.Request(args)
			if err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			if live {
				if err := e.askServer(cmd.Context()); err != nil {
					return err
				}
			}
			if e.Farm, err = cli.LoadConfig(e.config, cmd.ErrOrStderr(), e.added...); err != nil {
				return err
			}
			x, silence := e.ofFamily(&client, request, args)
			if x.Plan == nil {
				return silence
			}
			text := func(w io.Writer) error {
				_, err := io.WriteString(w, x.Text())
				return err
			}
			return errors.Join(output.Print(cmd, x, text), silence)
		},
	}
	cli.ConfigFlag(cmd, &e.config)
	e.api.Flags(cmd)
	client.flags(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "also read the running server's leases, the nodes that were added over its API, and the hardware of unknown machines")
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// explainer has the data that a server would answer from.
type explainer struct {
	explain.Server
	config string
	api    cli.Client
	added  []pools.PoolNode
}

// ofFamily returns the server's answer to a client, by DHCPv4 or by DHCPv6.
func (e *explainer) ofFamily(c *Client, request []byte, args []string) (explain.Explanation, error) {
	if c.File == "" {
		d, err := c.discover(args)
		if err != nil {
			return explain.Explanation{}, err
		}
		if c.IPv6 || c.Relay == "" && e.WantsIPv6(d.MAC) {
			return e.Explain6(d)
		}
	}
	return e.Explain(request)
}

// askServer gets the nodes that the config file does not declare, and the leases, from
// the running server.
func (e *explainer) askServer(ctx context.Context) error {
	all, err := cli.Get(ctx, &e.api, client.Nodes)
	if err != nil {
		return err
	}
	e.NextBoots = map[string]pools.NextBoot{}
	for _, n := range all {
		e.NextBoots[n.Name] = n.NextBoot
		if !n.Declared() {
			e.added = append(e.added, n.PoolNode)
		}
	}
	if e.Unknown, err = cli.Get(ctx, &e.api, client.Unknown); err != nil {
		return err
	}
	e.Leases, err = cli.Get(ctx, &e.api, client.Leases)
	return err
}
