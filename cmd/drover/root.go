package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"drover/cmd/drover/backup"
	"drover/cmd/drover/bootfile"
	"drover/cmd/drover/cli"
	"drover/cmd/drover/complete"
	"drover/cmd/drover/configfile"
	"drover/cmd/drover/doctor"
	"drover/cmd/drover/element"
	"drover/cmd/drover/explain"
	hosts "drover/cmd/drover/host"
	"drover/cmd/drover/login"
	"drover/cmd/drover/node"
	"drover/cmd/drover/power"
	"drover/cmd/drover/status"
	"drover/pools"
)

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Execute(ctx, newRootCommand(), args, stdout, stderr)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "drover",
		Short: "Netboot bare-metal servers into the right Kubernetes cluster",
		Long: `drover brings diskless bare-metal servers into the right Kubernetes cluster:
it answers their DHCP, serves them a loader, a kernel and a root image, gives
them their identity, and lets them join.

Exit codes: 0 done, 1 failed or invalid, 2 usage, 3 partly done,
4 server unreachable, 5 refused.`,
		Example: "  drover init\n  drover check -c drover.yaml\n  drover serve -c drover.yaml\n  drover status",
		Version: pools.Version,
	}
	root.AddCommand(
		newServeCommand(), newCheckCommand(), explain.NewCommand(), newClusterCommand(), newTenantCommand(),
		element.NewPoolCommand(), element.NewTagCommand(), newBootCommand(), newLeaseCommand(), newTokenCommand(),
		newSSHCommand(), newExportCommand(), newApplyCommand(), newVersionCommand(), newManCommand(),
	)
	root.AddCommand(hosts.NewCommand())
	root.AddCommand(backup.Commands(pools.Version)...)
	root.AddCommand(bootfile.Commands(pools.Version)...)
	root.AddCommand(login.Commands()...)
	root.AddCommand(power.Commands()...)
	root.AddCommand(configfile.Commands()...)
	root.AddCommand(node.Commands()...)
	root.AddCommand(status.NewCommand(), doctor.NewCommand())
	complete.Install(root)
	addHelp(root)
	group(root)
	return root
}

// addHelp adds the commands help and completion, which cobra otherwise adds later, with
// examples.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Example = "  drover help node set"
		case "completion":
			cmd.Example = "  drover completion bash > /etc/bash_completion.d/drover"
			cli.Group(cmd) // a shell that it does not know is an error
			for _, shell := range cmd.Commands() {
				shell.Example = "  drover completion " + shell.Name()
			}
		}
	}
}
