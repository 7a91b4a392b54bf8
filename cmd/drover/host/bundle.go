package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/atomicfile"
	"drover/kube/externalhost/bundle"
)

func newBundleCommand() *cobra.Command {
	var server files
	var cluster, file string
	var output cli.Output
	var programs []string
	cmd := &cobra.Command{
		Use:   "bundle NAME",
		Short: "Write the tar that makes a machine a host of a cluster",
		Long: `Bundle writes a tar with flanneld and kube-proxy as units of systemd, their
config, credentials of their own for this host, a timer that renews these, and a
resolver for the cluster's domain. On the host, as root:

  tar -xf NAME.tar && NAME/install.sh

The tar has credentials of the host: its mode is 0600, keep it so. They are valid
for 30 days; the host renews them each day. The host needs curl, ip and nft (or
iptables), and flanneld and kube-proxy in /usr/local/bin, which --program brings; drover
itself, too, for drover host check, and for the ports that the host exposes.`,
		Example: "  drover host bundle legacy1\n  drover host bundle legacy1 --program ./flanneld --program ./kube-proxy -f /root/legacy1.tar",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			brought, err := readPrograms(programs)
			if err != nil {
				return err
			}
			h, err := with(cmd, server, func(inv *inventory) (bundle.Host, error) { return inv.bundle(cmd.Context(), cluster, args[0]) })
			if err != nil {
				return err
			}
			if file == "" {
				file = h.Name + ".tar"
			}
			if err := atomicfile.Create(file, 0o600, func(f *os.File) error { return bundle.Write(f, h, time.Now(), brought...) }); err != nil {
				return err
			}
			result := map[string]string{"file": file, "name": h.Name, "cluster": h.Cluster, "podCIDR": h.PodCIDR.String()}
			return output.Print(cmd, result, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: host %s of cluster %s, pod network %s\n", file, h.Name, h.Cluster, h.PodCIDR)
				return err
			})
		},
	}
	server.flags(cmd)
	clusterFlag(cmd, &cluster)
	output.Flag(cmd, "text", "json", "yaml")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write (default NAME.tar)")
	programFlag(cmd, &programs)
	return cmd
}

func programFlag(cmd *cobra.Command, programs *[]string) {
	cmd.Flags().StringArrayVar(programs, "program", nil, "flanneld, kube-proxy or drover for the host's processor, to go with it")
}

// readPrograms reads the programs of a bundle.
func readPrograms(paths []string) (all []bundle.Program, err error) {
	for _, path := range paths {
		name := filepath.Base(path)
		if !slices.Contains([]string{"flanneld", "kube-proxy", "drover"}, name) {
			return nil, &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--program %s: want a file with the name flanneld, kube-proxy or drover", path)}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, bundle.Program{Name: name, Data: data})
	}
	return all, nil
}

// ready returns a host that has what a bundle needs.
func (inv *inventory) ready(ctx context.Context, cluster, name string) (row, error) {
	r, err := inv.find(ctx, cluster, name)
	if err == nil && (!r.PodCIDR.IsValid() || !r.Account) {
		err = errors.New("the host has no Node or ServiceAccount yet: drover serve makes them from this config; see drover host list")
	}
	return r, err
}

// bundle collects the facts of a host's bundle, with new credentials.
func (inv *inventory) bundle(ctx context.Context, cluster, name string) (none bundle.Host, err error) {
	r, err := inv.ready(ctx, cluster, name)
	if err != nil {
		return none, err
	}
	hosts, err := inv.clusters.Hosts(r.Cluster)
	if err != nil {
		return none, err
	}
	declared, network, err := hosts.Declared(name)
	if err != nil {
		return none, err
	}
	credentials, err := hosts.Credentials(ctx, name, bundle.Lifetime)
	if err != nil {
		return none, err
	}
	return bundle.Host{
		Name: name, Cluster: r.Cluster, Address: declared.Address, PodCIDR: r.PodCIDR, Network: network, Expose: declared.Expose,
		Server: credentials.Server, CA: credentials.CA, Token: credentials.Token,
	}, nil
}
