// Package explain implements drover explain. The command shows the Plan of a machine,
// the origin of each value, and the DHCP reply byte for byte, which package dhcp/explain
// finds. It sends no packet.
package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
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
	cmd := &cobra.Command{
		Use:   "explain MAC|NODE|ADDRESS | --request FILE",
		Short: "Show what a machine would get, and why",
		Long: `Explain prints the Plan for a machine: name, address, pool, cluster, image, loader,
kernel arguments, DHCP options, files, labels, taints, each with the line of the
config that set it. Then it prints the DHCP reply to such a machine's DISCOVER,
option by option. --request shows the reply to a captured DHCP request instead,
given as bytes or in hex. A machine with IPv6 only, and one of --ipv6, is explained
by the DHCPv6 reply to its SOLICIT. If the server would not answer, explain says why
and fails.

It sends no DHCP packet. It reads the config file, and asks the running server of this
host for the nodes that were added over the REST API, the leases, the next boots, and what
unknown machines have reported of their hardware. Where it could not ask, the first line
says so: then nodes of the API look like unknown hardware, and an address of a range is the
one that a server without leases would give. With -c it asks with --live alone, which fails
if the server does not answer; --offline never asks.`,
		Example: `  drover explain m1c1
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2 --arch bios -o yaml
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2 --live
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2 --arch os --relay 10.29.0.1 --circuit-id eth7
  drover explain -c drover.yaml --request discover.hex -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, silence := e.explain(cmd, &client, args)
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
	cmd.Flags().BoolVar(&e.live, "live", false, "ask the running server, and fail if it does not answer")
	cmd.Flags().BoolVar(&e.offline, "offline", false, "the config file alone, without nodes of the API, leases and next boots")
	cmd.MarkFlagsMutuallyExclusive("live", "offline")
	output.Flag(cmd, "text", "json", "yaml")
	cli.OnHost(cmd, "give a file with -c; drover node show asks the server", "config")
	return cmd
}

// explainer has the data that a server would answer from.
type explainer struct {
	explain.Server
	config        string
	live, offline bool
	api           cli.Client
	added         []pools.PoolNode
}

// explain returns the answer to a client, which args name, and why there is none.
func (e *explainer) explain(cmd *cobra.Command, c *Client, args []string) (explain.Explanation, error) {
	none := explain.Explanation{}
	if _, err := c.Request(args); err != nil && (c.File != "" || !isNameOrAddress(args)) { // before the server is asked
		return none, &cli.Error{Code: cli.Usage, Err: err}
	}
	if err := e.askIfWanted(cmd); err != nil {
		return none, err
	}
	var err error
	if e.Farm, err = cli.LoadConfig(e.config, cmd.ErrOrStderr(), e.added...); err != nil {
		return none, err
	}
	if args, err = e.machine(args); err != nil {
		return none, err
	}
	request, err := c.Request(args)
	if err != nil {
		return none, &cli.Error{Code: cli.Usage, Err: err}
	}
	return e.ofFamily(c, request, args)
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

// askIfWanted asks the server unless flags say otherwise. That it was not asked is told, since the
// answer may then be wrong.
func (e *explainer) askIfWanted(cmd *cobra.Command) error {
	const unknown = "nodes of the API, leases and next boots are not known"
	switch {
	case e.live:
		return e.askServer(cmd.Context())
	case e.offline:
	case cmd.Flags().Changed("config"):
		fmt.Fprintf(cmd.ErrOrStderr(), "note: of the file alone: %s (--live asks the server)\n", unknown)
	default:
		if err := e.askServer(cmd.Context()); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "note: the server was not asked: %v; %s\n", err, unknown)
		}
	}
	return nil
}

// askServer gets the nodes that the config file does not declare, and the leases, from
// the running server.
func (e *explainer) askServer(ctx context.Context) error {
	all, err := cli.Get(ctx, &e.api, client.Nodes)
	if err != nil {
		return err
	}
	unknown, err := cli.Get(ctx, &e.api, client.Unknown)
	if err != nil {
		return err
	}
	leases, err := cli.Get(ctx, &e.api, client.Leases)
	if err != nil {
		return err
	}
	e.Unknown, e.Leases, e.NextBoots = unknown, leases, map[string]pools.NextBoot{}
	for _, n := range all {
		e.NextBoots[n.Name] = n.NextBoot
		if !n.Declared() {
			e.added = append(e.added, n.PoolNode)
		}
	}
	return nil
}

// isNameOrAddress reports whether the argument of explain is the name or the address of a machine.
func isNameOrAddress(args []string) bool {
	if len(args) == 0 {
		return false
	}
	_, err := netip.ParseAddr(args[0])
	return err == nil || !strings.Contains(args[0], ":")
}

// machine returns the arguments with the MAC of a machine in place of its name or address.
func (e *explainer) machine(args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	if _, err := pools.ParseMAC(args[0]); err == nil {
		return args, nil
	}
	n, ok := e.Farm.Node(args[0])
	if a, err := netip.ParseAddr(args[0]); err == nil {
		if n, ok = e.Farm.NodeAt(a); !ok {
			i := slices.IndexFunc(e.Leases, func(l pools.LeaseInfo) bool { return l.Address == a && !l.Released })
			if i < 0 {
				return nil, fmt.Errorf("no node and no lease has the address %s", a)
			}
			return []string{e.Leases[i].MAC.String()}, nil
		}
	}
	i := slices.IndexFunc(e.Unknown, func(u pools.Unknown) bool { return pools.CatchAllName(u.MAC) == args[0] })
	switch {
	case !ok && i >= 0:
		return []string{e.Unknown[i].MAC.String()}, nil
	case !ok:
		return nil, fmt.Errorf("no node has the name %q", args[0])
	case len(n.MACs) == 0:
		return nil, fmt.Errorf("node %q is known by its place: give the MAC of the machine, with --relay and --circuit-id", n.Name)
	}
	return []string{n.MACs[0].String()}, nil
}
