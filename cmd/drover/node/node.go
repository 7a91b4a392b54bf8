// Package node has the commands of drover for machines: node works on those that the farm
// knows, and unknown on those that asked for an address and that no node declares.
//
// The server decides what may change; this package has flags and printing.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/printable"
	"drover/pools"
	"drover/web/client"
)

// Commands returns the commands.
func Commands() []*cobra.Command { return []*cobra.Command{newNodeCommand(), newUnknownCommand()} }

func newNodeCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "node",
		Short: "List, add, change and remove nodes of a running server",
		Long: `Node works on the nodes of a running drover, over its REST API. It lists and shows
the nodes of the config file too; to change one of those, edit the file.`,
	}
	c.Flags(cmd)
	return cli.Group(cmd, newNodeListCommand(c), newNodeShowCommand(c), newNodeAddCommand(c), newSetCommand(c), newMoveCommand(c), newRenameCommand(c), newRemoveCommand(c), newForgetCommand(c), newNodeNextBootCommand(c))
}

func newNodeShowCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show NAME|MAC|ADDRESS",
		Short:   "Show a node, and how its machine is",
		Example: "  drover node show m1c30\n  drover node show 10.28.36.174\n  drover node show m1c30 -o json",
		Args:    cobra.ExactArgs(1),
	}
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (pools.NodeInfo, error) {
		name, err := cli.NodeNamed(ctx, c, args[0])
		if err != nil {
			return pools.NodeInfo{}, err
		}
		return cli.Get(ctx, c, client.Node.Of(name))
	}, nodeText)
	return cmd
}

func nodeText(w io.Writer, n pools.NodeInfo) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(t, "%s\t%s\n", printable.Text(name), printable.Text(value)) }
	line("name", n.Name)
	line("pool", n.Pool)
	line("ip", cli.AddrOrDash(n.IP))
	line("macs", cli.OrDash(joinMACs(n.MACs)))
	for _, m := range []struct{ name, value string }{
		{"mac", n.Match.MAC}, {"clientID", n.Match.ClientID}, {"circuitID", n.Match.CircuitID}, {"remoteID", n.Match.RemoteID}, {"subscriberID", n.Match.SubscriberID},
		{"class", n.Match.Class}, {"userClass", n.Match.UserClass}, {"firmware", string(n.Match.Firmware)}, {"arch", n.Match.Arch.String()},
	} {
		if m.value != "" {
			line("match "+m.name, m.value)
		}
	}
	line("tags", cli.OrDash(strings.Join(n.Tags, " ")))
	for _, key := range slices.Sorted(maps.Keys(n.DHCPOptions)) {
		line("option "+key, strings.Join(n.DHCPOptions[key], ", "))
	}
	if n.Ignore {
		line("ignore", "it gets silence")
	}
	if n.NextBoot != "" {
		line("next boot", string(n.NextBoot))
	}
	line("from", from(n))
	statusLines(line, n)
	return t.Flush()
}

func newNodeAddCommand(c *cli.Client) *cobra.Command {
	var pool, ip string
	var macs, tags []string
	var match pools.Match
	var each cli.Each
	cmd := &cobra.Command{
		Use:   "add NAME --pool POOL {--mac MAC...|--circuit-id ID|...} --ip IP [--tag TAG]...",
		Short: "Add a node; its next DHCP packet is answered",
		Long: `Add makes a node. Its MACs identify it, or else its client identifier, or the port
of its switch as the relay agent there names it. With "dhcp: proxy" it needs no
address.`,
		Example: `  drover node add n17 --pool compute --mac 94:57:a5:d3:ec:f2 --mac 94:57:a5:d3:ec:f3 \
    --ip 10.28.36.190 --tag debug
  drover node add n18 --pool compute --remote-id sw1 --circuit-id ge-0/0/7 --ip 10.28.36.191`,
		Args:                  cobra.ExactArgs(1),
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := nodeFromFlags(args[0], pool, ip, macs, tags)
			if n.Match = match; len(macs) == 0 && match.IsZero() {
				err = errors.Join(err, errors.New("--mac is missing: a node is known by its MACs, or by --client-id, --circuit-id, --remote-id or --subscriber-id"))
			}
			if err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			if _, err := cli.Send(cmd.Context(), c, client.AddNode, n); err != nil {
				return err
			}
			each.Add(cmd, cli.Done{Name: n.Name, Done: "added", Detail: "to pool " + n.Pool})
			return each.Print(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&pool, "pool", "", "pool that the node belongs to")
	f.StringArrayVar(&macs, "mac", nil, "MAC of a network card; once for each")
	f.StringVar(&match.ClientID, "client-id", "", "client identifier (option 61), text or hex:0a0b")
	f.StringVar(&match.CircuitID, "circuit-id", "", "port of the switch (option 82.1), text or hex:0a0b")
	f.StringVar(&match.RemoteID, "remote-id", "", "the switch (option 82.2), text or hex:0a0b")
	f.StringVar(&match.SubscriberID, "subscriber-id", "", "subscriber at the relay agent (option 82.6), text or hex:0a0b")
	f.StringVar(&ip, "ip", "", "address of the node")
	f.StringArrayVar(&tags, "tag", nil, "tag, after those of the pool; once for each")
	each.Flag(cmd)
	return cmd
}

func nodeFromFlags(name, pool, ip string, macs, tags []string) (pools.PoolNode, error) {
	n := pools.PoolNode{Pool: pool, Node: pools.Node{Name: name, Tags: tags}}
	var errs []error
	if pool == "" {
		errs = append(errs, errors.New("--pool is missing: which pool does the node belong to?"))
	}
	for _, s := range macs {
		m, err := pools.ParseMAC(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("--mac: %w", err))
		}
		n.MACs = append(n.MACs, m)
	}
	if ip != "" { // the server checks whether the node needs one
		a, err := netip.ParseAddr(ip)
		if err != nil {
			errs = append(errs, fmt.Errorf("--ip: %q is not an IP address", ip))
		}
		n.IP = a
	}
	return n, errors.Join(errs...)
}

func joinMACs(macs []pools.MAC) string {
	words := make([]string, len(macs))
	for i, m := range macs {
		words[i] = m.String()
	}
	return strings.Join(words, ",")
}

// from returns the origin of a node: "drover.yaml:41" or "API".
func from(n pools.NodeInfo) string {
	if n.CatchAll {
		return "catch-all"
	}
	if n.Declared() {
		return fmt.Sprintf("%s:%d", n.Source.File, n.Source.Line)
	}
	if !n.ChassisSlot.IsZero() {
		return n.ChassisSlot.String()
	}
	return "API"
}
