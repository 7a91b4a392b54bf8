package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/resolve"
	"drover/tenants"
)

func newTenantCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "Tenants whose control planes drover runs",
	}
	return cli.Group(cmd, newTenantKubeconfigCommand(), newTenantNewKeysCommand())
}

// tenantFlags are those that name the admin cluster of a tenant.
type tenantFlags struct{ config, admin string }

func (f *tenantFlags) add(cmd *cobra.Command) {
	cli.ConfigFlag(cmd, &f.config)
	cmd.Flags().StringVar(&f.admin, "admin-kubeconfig", "", "kubeconfig of the admin cluster")
}

// connect returns the connection to the admin cluster, and the namespace of its tenants.
func (f *tenantFlags) connect(cmd *cobra.Command, tenant string) (conf *tenants.Connection, namespace string, err error) {
	farm, err := cli.LoadConfig(f.config, cmd.ErrOrStderr())
	if err != nil {
		return nil, "", err
	}
	if err := maybeHosted(farm, tenant); err != nil {
		return nil, "", err
	}
	if f.admin == "" {
		f.admin = farm.Path(farm.Config.Server.AdminKubeconfig)
	}
	conf, err = tenants.AdminConfig(f.admin)
	return conf, farm.Config.Server.Objects.Namespace, err
}

func newTenantKubeconfigCommand() *cobra.Command {
	var flags tenantFlags
	cmd := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Print the administrator's kubeconfig of a tenant",
		Long: `Kubeconfig prints the kubeconfig of the Secret NAME-admin in the namespace
server.objects.namespace of the admin cluster. Its holder may do everything in
the tenant, and nothing in the admin cluster. It ends after a year at most;
drover renews the Secret well before.

It reads the Secret with your own rights: with --admin-kubeconfig, or with
server.adminKubeconfig of the config, or as the pod that it runs in.`,
		Example: "  (umask 077; drover tenant kubeconfig tenant-a > tenant-a.kubeconfig)",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conf, namespace, err := flags.connect(cmd, args[0])
			if err != nil {
				return err
			}
			text, err := tenants.Kubeconfig(cmd.Context(), conf, namespace, args[0])
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	flags.add(cmd)
	return cmd
}

func newTenantNewKeysCommand() *cobra.Command {
	var flags tenantFlags
	var output cli.Output
	var yes bool
	cmd := &cobra.Command{
		Use:   "new-keys NAME",
		Short: "Give a tenant that has lost its keys new ones",
		Long: `New-keys makes the Secrets NAME-ca, NAME-front-proxy-ca and NAME-sa, as far as
they are gone from the namespace server.objects.namespace of the admin cluster.
It is for a tenant that is not Ready with the reason KeysLost, and whose Secrets
are in no backup: restore them if they are. It refuses a tenant that has its keys.

The data of etcd stay, and the control plane starts anew with the new keys. No
node, kubeconfig or ServiceAccount's token of before is valid then: each node has
to boot again. Networks are those that the config declares: if they are not the
ones of before, set them back first.

It works with your own rights: with --admin-kubeconfig, or with
server.adminKubeconfig of the config, or as the pod that it runs in.`,
		Example: "  drover tenant new-keys tenant-a",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conf, namespace, err := flags.connect(cmd, args[0])
			if err != nil {
				return err
			}
			missing, _, err := tenants.Lost(cmd.Context(), conf, namespace, args[0])
			if err != nil {
				return err
			}
			if len(missing) > 0 {
				question := fmt.Sprintf("Make %s anew? No node, kubeconfig or token of %s is valid then: each node has to boot again.", strings.Join(missing, ", "), args[0])
				if err := cli.Confirm(cmd, yes, question); err != nil {
					return err
				}
			}
			made, err := tenants.NewKeys(cmd.Context(), conf, namespace, args[0], time.Now())
			printed := output.Print(cmd, map[string][]string{"made": made}, func(w io.Writer) error {
				for _, name := range made {
					fmt.Fprintf(w, "made Secret %s/%s\n", namespace, name)
				}
				return nil
			})
			return errors.Join(err, printed)
		},
	}
	output.Flag(cmd, "text", "json", "yaml")
	flags.add(cmd)
	cli.YesFlag(cmd, &yes)
	return cmd
}

// maybeHosted returns an error for a cluster whose control plane drover cannot be running.
// One that is not in the config may be an object of the admin cluster.
func maybeHosted(farm *resolve.Farm, name string) error {
	all := farm.Clusters()
	i := slices.IndexFunc(all, func(c pools.Cluster) bool { return c.Name == name })
	switch {
	case i >= 0 && all[i].ControlPlane == nil:
		return fmt.Errorf("cluster %q has no controlPlane in the config: drover does not run it", name)
	case i < 0 && farm.Config.Server.Objects.Namespace == "":
		return fmt.Errorf("no cluster %q in the config", name)
	}
	return nil
}
