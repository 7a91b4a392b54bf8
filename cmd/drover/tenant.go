package main

import (
	"fmt"
	"slices"

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
	return cli.Group(cmd, newTenantKubeconfigCommand())
}

func newTenantKubeconfigCommand() *cobra.Command {
	var config, admin string
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
			farm, err := cli.LoadConfig(config, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := maybeHosted(farm, args[0]); err != nil {
				return err
			}
			if admin == "" {
				admin = farm.Path(farm.Config.Server.AdminKubeconfig)
			}
			conf, err := tenants.AdminConfig(admin)
			if err != nil {
				return err
			}
			text, err := tenants.Kubeconfig(cmd.Context(), conf, farm.Config.Server.Objects.Namespace, args[0])
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cli.ConfigFlag(cmd, &config)
	cmd.Flags().StringVar(&admin, "admin-kubeconfig", "", "kubeconfig of the admin cluster")
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
