package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/element"
	"drover/deploy"
	"drover/internal/atomicfile"
	"drover/internal/printable"
	"drover/kube"
	"drover/kube/inspect"
	"drover/pools"
	"drover/pools/resolve"
)

func newClusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Prepare and check the clusters that nodes join",
	}
	return cli.Group(cmd, element.NewClusterListCommand(), element.NewClusterShowCommand(), newClusterCheckCommand(), newClusterPrepareCommand())
}

func newClusterCheckCommand() *cobra.Command {
	var config, state string
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Report what a cluster lacks for nodes to join it",
		Long: `Check tests a cluster with drover's own credentials, and with a join token as a
node would: rights (the needed ones and no more), admission policies,
cluster-info, the bootstrapsigner and the tokencleaner, and the objects that
kubeadm and kubelets read. Nodes of the config must not have the name of a Node that
drover does not own. It mints two tokens and deletes them, and joins
nothing. Of a cluster with hosts outside it counts the Services and endpoints that
kube-proxy there has to follow, and advises what keeps it fast. It takes about 12
seconds. The exit code is 1 if anything is wrong; advice is not.`,
		Example: "  drover cluster check -c drover.yaml tenant-a",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			farm, err := cli.LoadConfig(config, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			clusters := &kube.Clusters{Admin: farm.Path(farm.Config.Server.AdminKubeconfig), State: state}
			clusters.Set(farm.Clusters())
			defer clusters.Close()
			found, err := clusters.Inspect(cmd.Context(), args[0], joining(farm, args[0])...)
			if err != nil {
				return err
			}
			if err := output.Print(cmd, found, func(w io.Writer) error { return findings(w, found) }); err != nil {
				return err
			}
			for _, f := range found {
				if !f.OK {
					return fmt.Errorf("cluster %q: nodes cannot join as they should", args[0])
				}
			}
			return nil
		},
	}
	cli.ConfigFlag(cmd, &config)
	cmd.Flags().StringVar(&state, "state", cli.DefaultState, "state directory of the server, with the tokens that it has renewed")
	output.Flag(cmd, "text", "json", "yaml")
	cli.OnHost(cmd, "give its config with -c", "config")
	return cmd
}

// joining returns the names of the nodes that are to join a cluster.
func joining(farm *resolve.Farm, cluster string) (names []string) {
	inCluster := map[string]bool{}
	for _, p := range farm.Config.Pools {
		inCluster[p.Name] = p.Cluster == cluster
	}
	for _, n := range farm.Nodes() {
		if inCluster[n.Pool] {
			names = append(names, n.Name)
		}
	}
	return names
}

func findings(w io.Writer, found []inspect.Finding) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range found {
		mark := "ok"
		switch {
		case !f.OK:
			mark = "WRONG"
		case f.Advice:
			mark = "advice"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark, printable.Text(f.What), printable.Text(f.Detail))
	}
	return t.Flush()
}

func samePath(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

func newClusterPrepareCommand() *cobra.Command {
	p := preparation{lifetime: 365 * 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "prepare NAME",
		Short: "Give drover its rights in a cluster",
		Long: `Prepare applies the rights of drover and of joining nodes in a cluster, and the
admission policies that limit drover to them, with the kubeconfig of an
administrator. With --print it only shows the manifest, for kubectl apply -f -.
It leaves out rights that the config of the cluster does not need (approver,
serving); without a config file --print shows everything.

With --write it then makes a token of the ServiceAccount drover, and writes drover's own
kubeconfig for the cluster with it. Its mode is 0600; in a directory of root with another
group, such as /etc/drover of the package, it is 0640, so that the service can read it.
drover serve renews that token when a third of its life is left; /readyz has a warning
if it cannot. Run drover cluster check afterwards, and prepare again when the changelog
of an update says so.`,
		Example: "  drover cluster prepare tenant-a --admin admin.kubeconfig --write /etc/drover/tenant-a.kubeconfig\n  drover cluster prepare tenant-a --print",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return p.run(cmd, args[0]) },
	}
	cli.ConfigFlag(cmd, &p.config)
	cmd.Flags().StringVar(&p.admin, "admin", "", "kubeconfig of an administrator of the cluster")
	cmd.Flags().BoolVar(&p.show, "print", false, "only show the manifest")
	cmd.Flags().StringVar(&p.write, "write", "", "file for drover's own kubeconfig of the cluster")
	cli.DurationFlag(cmd.Flags(), &p.lifetime, "lifetime", p.lifetime, "how long its token lasts, unless the cluster has a limit")
	_ = cmd.MarkFlagFilename("write", "kubeconfig")
	p.each.Flag(cmd)
	cli.OnHost(cmd, "give its config with -c", "config", "print")
	return cmd
}

// preparation is drover cluster prepare, with its flags.
type preparation struct {
	config, admin, write string
	show                 bool
	lifetime             time.Duration
	each                 cli.Each
}

func (p *preparation) run(cmd *cobra.Command, name string) error {
	out := cmd.OutOrStdout()
	if _, err := os.Stat(p.config); p.show && errors.Is(err, fs.ErrNotExist) {
		_, err := out.Write(deploy.RBAC)
		return err
	}
	farm, err := cli.LoadConfig(p.config, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	all := farm.Clusters()
	i := slices.IndexFunc(all, func(c pools.Cluster) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("no cluster %q in the config", name)
	}
	manifest := deploy.Manifest(deploy.Rights{Approve: all[i].Approver != pools.ByCluster, Serve: all[i].Serving, Renew: true, Hosts: all[i].HostNetwork != nil})
	switch {
	case p.show:
		_, err := out.Write(manifest)
		return err
	case p.admin == "":
		return &cli.Error{Code: cli.Usage, Err: errors.New("--admin FILE is missing: the kubeconfig of an administrator of the cluster (or --print, to apply it yourself)")}
	case all[i].Kubeconfig != "" && samePath(p.admin, all[i].Kubeconfig):
		return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("%s is drover's own kubeconfig: drover cannot give itself rights", p.admin)}
	case p.write != "" && samePath(p.admin, p.write):
		return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--write %s is the kubeconfig of the administrator", p.write)}
	case p.lifetime < 10*time.Minute:
		return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--lifetime %s: want ten minutes at least", p.lifetime)}
	}
	err = inspect.Apply(cmd.Context(), p.admin, manifest, func(object string) { p.each.Add(cmd, cli.Done{Name: object, Done: "applied"}) })
	if err == nil && p.write != "" {
		err = writeCredentials(cmd, p.admin, p.write, p.lifetime, &p.each)
	}
	return errors.Join(err, p.each.Print(cmd))
}

// credentialsMode returns the mode of the credentials that root writes to file. They get
// the owner and the group of the file that they replace, or else of its directory. Where
// these are root and the group of a service, as in /etc/drover, the group has to read them.
func credentialsMode(file string) os.FileMode {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		info, err = os.Stat(filepath.Dir(file))
	}
	if err != nil || os.Geteuid() != 0 {
		return 0o600
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid == 0 && s.Gid != 0 {
		return 0o640
	}
	return 0o600
}

// writeCredentials writes drover's own kubeconfig of a cluster.
func writeCredentials(cmd *cobra.Command, admin, file string, lifetime time.Duration, each *cli.Each) error {
	file, err := atomicfile.Follow(file)
	if err != nil {
		return err
	}
	kubeconfig, end, err := inspect.Credentials(cmd.Context(), admin, lifetime)
	if err == nil {
		err = atomicfile.Write(file, kubeconfig, credentialsMode(file))
	}
	if err == nil {
		each.Add(cmd, cli.Done{Name: file, Done: "written, its token lasts until " + end.UTC().Format(time.DateOnly)})
	}
	return err
}
