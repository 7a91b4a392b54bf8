// Package host has the commands of hosts outside the clusters: drover host list, show, check,
// bundle, invite, proxy and rm. They read the config file and talk to the clusters with drover's own
// credentials; drover serve makes the objects of hosts. On a host itself, drover host check
// and proxy read the installed bundle.
package host

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/kube"
	"drover/kube/externalhost"
	"drover/pools"
)

// NewCommand returns the command drover host.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Hosts outside the clusters that reach pods and Services",
	}
	return cli.Group(cmd, newListCommand(), newShowCommand(), newCheckCommand(), newBundleCommand(), newInviteCommand(), newProxyCommand(), newRemoveCommand())
}

// row is a host of a cluster.
type row struct {
	Cluster string `json:"cluster"`
	externalhost.Status
}

// state describes a host for people.
func (r row) state() string {
	switch {
	case !r.Declared:
		return "not in the config: drover host rm"
	case !r.PodCIDR.IsValid() || !r.Account:
		return "drover serve has not made it yet"
	case !r.Flannel:
		return "flannel has not run there yet"
	case !r.Ready:
		return "drover serve does not renew its Lease"
	}
	return "ok"
}

// inventory is the hosts of all clusters of a config.
type inventory struct {
	config   []pools.Cluster
	clusters *kube.Clusters
	address  netip.Addr // of the server
}

// files are the files of the server.
type files struct{ config, state string }

// flags adds the flags --config and --state to a command.
func (f *files) flags(cmd *cobra.Command) {
	cli.ConfigFlag(cmd, &f.config)
	cmd.Flags().StringVar(&f.state, "state", cli.DefaultState, "state directory of the server, with the tokens that it has renewed")
	_ = cmd.MarkFlagDirname("state")
}

// with loads the config of a server, and returns what f does with its clusters.
func with[T any](cmd *cobra.Command, of files, f func(*inventory) (T, error)) (none T, err error) {
	farm, err := cli.LoadConfig(of.config, cmd.ErrOrStderr())
	if err != nil {
		return none, err
	}
	clusters := &kube.Clusters{Admin: farm.Path(farm.Config.Server.AdminKubeconfig), State: of.state}
	clusters.Set(farm.Clusters())
	defer clusters.Close()
	return f(&inventory{farm.Clusters(), clusters, farm.Config.Server.Address})
}

// list returns the hosts of a cluster, or of all.
func (inv *inventory) list(ctx context.Context, only string) (rows []row, err error) {
	rows = []row{}
	found := only == ""
	for _, c := range inv.config {
		if only != "" && c.Name != only || c.HostNetwork == nil {
			found = found || c.Name == only
			continue
		}
		found = true
		h, err := inv.clusters.Hosts(c.Name)
		if err != nil {
			return nil, err
		}
		all, err := h.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			rows = append(rows, row{c.Name, s})
		}
	}
	if !found {
		return nil, fmt.Errorf("no cluster %q in the config", only)
	}
	return rows, nil
}

// find returns a host by its name, which may be in several clusters.
func (inv *inventory) find(ctx context.Context, cluster, name string) (row, error) {
	rows, err := inv.list(ctx, cluster)
	if err != nil {
		return row{}, err
	}
	var found []row
	for _, r := range rows {
		if r.Name == name {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return row{}, fmt.Errorf("no cluster has a host %q; drover host list shows all", name)
	case 1:
		return found[0], nil
	}
	return row{}, &cli.Error{Code: cli.Usage, Err: fmt.Errorf("host %q is in clusters %q and %q: say --cluster", name, found[0].Cluster, found[1].Cluster)}
}

// remove removes the objects of a host.
func (inv *inventory) remove(ctx context.Context, cluster, name string) (row, error) {
	r, err := inv.find(ctx, cluster, name)
	if err != nil {
		return r, err
	}
	h, err := inv.clusters.Hosts(r.Cluster)
	if err != nil {
		return r, err
	}
	return r, h.Remove(ctx, r.Name)
}

func clusterFlag(cmd *cobra.Command, cluster *string) {
	cmd.Flags().StringVar(cluster, "cluster", "", "cluster of the host, if several have one of that name")
}

func newListCommand() *cobra.Command {
	var server files
	var cluster string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the hosts outside the clusters",
		Example: "  drover host list\n  drover host list --cluster tenant-a -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "table", func(ctx context.Context, _ []string) ([]row, error) {
		return with(cmd, server, func(inv *inventory) ([]row, error) { return inv.list(ctx, cluster) })
	}, func(w io.Writer, rows []row) error {
		return cli.Table(w, rows, "NAME\tCLUSTER\tADDRESS\tPOD NETWORK\tSTATE", func(r row) []any {
			return []any{r.Name, r.Cluster, r.Address, network(r), r.state()}
		})
	})
	server.flags(cmd)
	cmd.Flags().StringVar(&cluster, "cluster", "", "only the hosts of this cluster")
	return cmd
}

// network returns the podCIDR of a host, or nothing.
func network(r row) string {
	if !r.PodCIDR.IsValid() {
		return ""
	}
	return r.PodCIDR.String()
}

func newShowCommand() *cobra.Command {
	var server files
	var cluster string
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a host outside the clusters",
		Example: "  drover host show legacy1",
		Args:    cobra.ExactArgs(1),
	}
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (row, error) {
		return with(cmd, server, func(inv *inventory) (row, error) { return inv.find(ctx, cluster, args[0]) })
	}, func(w io.Writer, r row) error {
		own := "-"
		if r.PodCIDR.IsValid() {
			own = r.PodCIDR.Addr().String()
		}
		fmt.Fprintf(w, "host         %s\ncluster      %s\naddress      %s\npod network  %s\nfrom pods    %s\nstate        %s\n",
			r.Name, r.Cluster, cli.AddrOrDash(r.Address), cli.OrDash(network(r)), own, r.state())
		return nil
	})
	server.flags(cmd)
	clusterFlag(cmd, &cluster)
	return cmd
}

func newRemoveCommand() *cobra.Command {
	var server files
	var cluster string
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a host from its cluster",
		Long: `Rm deletes the Node, the Lease and the ServiceAccount of a host that is no longer
in the config; its credentials end at once. On the host, run the bundle's
uninstall.sh.`,
		Example: "  drover host rm legacy1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := with(cmd, server, func(inv *inventory) (row, error) { return inv.remove(cmd.Context(), cluster, args[0]) })
			if err != nil {
				return err
			}
			return output.PrintNamed(cmd, r, []string{r.Name}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "host %s removed from cluster %s; on the host: /etc/drover-host/%s/uninstall.sh\n", r.Name, r.Cluster, r.Cluster)
				return err
			})
		},
	}
	output.Flag(cmd, "text", "name", "json", "yaml")
	server.flags(cmd)
	clusterFlag(cmd, &cluster)
	return cmd
}
