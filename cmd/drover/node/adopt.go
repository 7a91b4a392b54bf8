package node

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"text/template"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/adopt"
	"drover/web/client"
)

// adoption makes nodes of unknown machines.
type adoption struct {
	change
	pool, name, ip string
	tags           []string
	first          int
	cycle          bool
}

func newUnknownAdoptCommand(c *cli.Client) *cobra.Command {
	a := &adoption{change: change{api: c}}
	cmd := &cobra.Command{
		Use:   "adopt MAC... --pool POOL",
		Short: "Make nodes of unknown machines, all in one step",
		Long: `Adopt makes a node of each machine. Names come from a template with .Index (from --first
on, in the order of the MACs), .MAC (12 digits), .Circuit and .Remote (what the relay agent
calls its port and its switch). "--ip auto" gives each the lowest free address of the network
that it asked from; an address is for one machine. With --cycle drover then switches the
machines off and on, where it knows their power.`,
		Example: `  drover unknown adopt 94:57:a5:d3:ec:f2 --pool compute --name-template m2c30 --ip 10.28.36.230
  drover unknown adopt 94:57:a5:d3:ec:f2 94:57:a5:d3:ed:03 --pool compute --name-template 'm2c{{.Index}}' --first 30 --ip auto
  drover unknown adopt 94:57:a5:d3:ec:f2 --pool compute --ip auto --cycle --dry-run`,
		Args:                  cobra.MinimumNArgs(1),
		DisableFlagsInUseLine: true,
		RunE:                  a.run,
	}
	f := cmd.Flags()
	f.StringVar(&a.pool, "pool", "", "pool of the nodes")
	f.StringVar(&a.name, "name-template", "node-{{.MAC}}", "name of a node")
	f.StringVar(&a.ip, "ip", "auto", "auto, or the address of the one machine")
	f.StringArrayVar(&a.tags, "tag", nil, "tag of the nodes, after those of the pool; once for each")
	f.IntVar(&a.first, "first", 1, "the first .Index")
	f.BoolVar(&a.cycle, "cycle", false, "switch the machines off and on then")
	a.flags(cmd, false)
	return cmd
}

func (a *adoption) run(cmd *cobra.Command, args []string) error {
	macs, address, err := a.check(args)
	if err != nil {
		return &cli.Error{Code: cli.Usage, Err: err}
	}
	seen, err := cli.Get(cmd.Context(), a.api, client.Unknown)
	if err != nil {
		return err
	}
	byMAC := map[pools.MAC]pools.Unknown{}
	for _, u := range seen {
		byMAC[u.MAC] = u
	}
	var machines []pools.Unknown
	var errs []error
	for _, m := range macs {
		u, ok := byMAC[m]
		if !ok {
			errs = append(errs, fmt.Errorf("no unknown machine has the MAC %s (drover unknown list)", m))
		}
		machines = append(machines, u)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	nodes, err := a.nodes(cmd, machines, address)
	if err != nil {
		return err
	}
	var changes []pools.NodeChange
	var names []string
	for i := range nodes {
		changes = append(changes, pools.NodeChange{New: &nodes[i]})
		names = append(names, nodes[i].Name)
	}
	if err := a.apply(cmd, changes, true); err != nil || a.dryRun || !a.cycle {
		return err
	}
	return a.restart(cmd, names)
}

// check reads the arguments; the address is the zero Addr for auto.
func (a *adoption) check(args []string) (macs []pools.MAC, address netip.Addr, err error) {
	if a.pool == "" {
		return nil, address, errors.New("--pool is missing: which pool do the nodes belong to?")
	}
	for _, s := range args {
		m, err := pools.ParseMAC(s)
		if err != nil {
			return nil, address, err
		}
		macs = append(macs, m)
	}
	if a.ip == "auto" {
		return macs, address, nil
	}
	if address, err = netip.ParseAddr(a.ip); err != nil {
		return nil, address, fmt.Errorf("--ip: %q is neither an IP address nor auto", a.ip)
	}
	if len(macs) > 1 {
		return nil, address, errors.New("--ip: an address is for one machine (--ip auto gives each its own)")
	}
	return macs, address, nil
}

// nameOf returns the name of the node for a machine.
func (a *adoption) nameOf(u *pools.Unknown, index int) (string, error) {
	t, err := template.New("name").Option("missingkey=error").Parse(a.name)
	if err != nil {
		return "", &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--name-template: %w", err)}
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		Index                int
		MAC, Circuit, Remote string
	}{index, u.MAC.Hex(), u.Circuit, u.Remote})
	if err != nil {
		return "", &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--name-template: %w", err)}
	}
	return b.String(), nil
}

// nodes returns the nodes for machines; with an address for the one that there is, else with
// free ones.
func (a *adoption) nodes(cmd *cobra.Command, machines []pools.Unknown, address netip.Addr) ([]pools.PoolNode, error) {
	r := adopt.Rule{Pool: a.pool, Tags: a.tags, First: a.first, Name: a.nameOf}
	if !address.IsValid() {
		r.Free = func(link string, n int) ([]netip.Addr, error) {
			return cli.Get(cmd.Context(), a.api, client.Addresses, "link", link, "limit", strconv.Itoa(min(n, 1000)))
		}
	}
	nodes, err := r.Nodes(machines)
	if errors.Is(err, adopt.ErrNoAddress) {
		err = fmt.Errorf("%w (--ip gives one)", err)
	}
	if address.IsValid() && len(nodes) == 1 {
		nodes[0].IP = address
	}
	return nodes, err
}

// restart switches the machines of nodes off and on.
func (a *adoption) restart(cmd *cobra.Command, names []string) error {
	job, err := cli.Send(cmd.Context(), a.api, client.Power, pools.PowerRequest{Action: "cycle", Nodes: names})
	if err != nil {
		return fmt.Errorf("the nodes are added; power cycle: %w", err)
	}
	fmt.Fprintf(a.output.Log(cmd), "power cycle of %d machines is under way: job %s\n", len(names), job.ID)
	return nil
}
