package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/host/check"
	"drover/kube/externalhost"
	"drover/kube/externalhost/bundle"
)

// report has the findings of a host in a cluster.
type report struct {
	Host     string       `json:"host"`
	Cluster  string       `json:"cluster"`
	Findings cli.Findings `json:"findings"`
}

func newCheckCommand() *cobra.Command {
	var server files
	var cluster, dir string
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "check [NAME]",
		Short: "Find what keeps a host from pods and Services, and say what to do",
		Long: `Check without a name examines the host that it runs on, as root, from the installed
bundle: kernel and modules, addresses and routes, the API server, clock and credentials,
and what the nodes say of themselves. It sends packets through the VXLAN to the nodes,
small and large ones, connects to a pod and a Service, and resolves a name. It changes
nothing.

With a name it examines a host from the server: what its cluster knows of it.

It fails if there is a fault; warnings are none.`,
		Example: "  drover host check\n  drover host check legacy1",
		Args:    cobra.MaximumNArgs(1),
	}
	output.Flag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var reports []report
		var err error
		if len(args) == 0 {
			reports, err = examine(cmd.Context(), dir, cluster)
		} else {
			reports, err = with(cmd, server, func(inv *inventory) ([]report, error) { return inv.check(cmd.Context(), cluster, args[0]) })
		}
		if err != nil {
			return err
		}
		if err := output.Print(cmd, reports, func(w io.Writer) error { return writeReports(w, reports) }); err != nil {
			return err
		}
		faults := 0
		for _, r := range reports {
			faults += r.Findings.Faults()
		}
		if faults > 0 {
			return fmt.Errorf("faults: %d", faults)
		}
		return nil
	}
	server.flags(cmd)
	clusterFlag(cmd, &cluster)
	cmd.Flags().StringVar(&dir, "dir", bundle.Parent, "directory of the installed bundles, on the host")
	return cmd
}

func writeReports(w io.Writer, reports []report) error {
	for _, r := range reports {
		if _, err := fmt.Fprintf(w, "host %s of cluster %s\n", r.Host, r.Cluster); err != nil {
			return err
		}
		if err := r.Findings.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// examine examines this host, in one cluster or in all whose bundles are installed.
func examine(ctx context.Context, parent, cluster string) (all []report, err error) {
	dirs, err := installed(parent, cluster)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		facts, err := readBundle(dir)
		if err != nil {
			return nil, err
		}
		h := check.Host{Facts: facts, Dir: dir, Cluster: externalhost.Open(facts.Cluster, kubeconfig(dir), time.Now)}
		all = append(all, report{facts.Name, facts.Cluster, h.Examine(ctx)})
	}
	return all, nil
}

// installed returns the directories of the bundles that this host has: that of a cluster, or
// without a name all.
func installed(parent, cluster string) ([]string, error) {
	if cluster != "" {
		return []string{filepath.Join(parent, filepath.Base(cluster))}, nil
	}
	dirs, err := filepath.Glob(filepath.Join(parent, "*", "host.json"))
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s: no bundle is installed on this host; drover host check NAME examines one from the server", parent)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs, nil
}

func readBundle(dir string) (bundle.Host, error) {
	facts, err := bundle.Read(dir)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (run it as root)", err)
	}
	return facts, err
}

func kubeconfig(dir string) string { return filepath.Join(dir, "kubeconfig") }

// check examines a host from the server.
func (inv *inventory) check(ctx context.Context, cluster, name string) ([]report, error) {
	r, err := inv.find(ctx, cluster, name)
	if err != nil {
		return nil, err
	}
	hosts, err := inv.clusters.Hosts(r.Cluster)
	if err != nil {
		return nil, err
	}
	peers, err := hosts.Peers(ctx)
	if err != nil {
		return nil, err
	}
	return []report{{name, r.Cluster, check.Server(r.Cluster, r.Status, hosts.Network(), peers)}}, nil
}
