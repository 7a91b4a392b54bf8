package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools/sshca"
	"drover/server"
)

func newSSHCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ssh",
		Short: "SSH host keys of nodes",
	}
	return cli.Group(cmd, newSSHCACommand())
}

func newSSHCACommand() *cobra.Command {
	var state, hosts string
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Print the line of known_hosts that has all nodes trusted",
		Long: `Each node has a certificate for its SSH host key, for its name and address. CA
prints the line of known_hosts by which ssh accepts these certificates, so that
nobody compares fingerprints. --hosts limits it to names: without it, ssh
accepts a certificate of this server for any host that it is for.

It reads nodes.key in the state directory of the server, from which the CA is
derived, and prints no secret.`,
		Example: `  drover ssh ca >> /etc/ssh/ssh_known_hosts
  drover ssh ca --hosts '*.example.org,10.28.*' >> ~/.ssh/known_hosts`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret, err := server.NodeKey(state)
			if err != nil {
				return err
			}
			line, err := sshca.Keys{Secret: secret}.KnownHosts(hosts)
			if err != nil {
				return fmt.Errorf("--hosts: %w", err)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), line)
			return err
		},
	}
	cmd.Flags().StringVar(&state, "state", cli.DefaultState, "state directory of the server")
	_ = cmd.MarkFlagDirname("state")
	cmd.Flags().StringVar(&hosts, "hosts", "*", "hosts that the line is for: names with * and ?, separated by commas")
	return cmd
}
