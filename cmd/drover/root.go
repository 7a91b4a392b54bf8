package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

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
	"drover/internal/printable"
	"drover/pools"
)

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// What servers, chassis and machines say is in tables, errors and logs: no output goes
	// past these writers.
	stdout, stderr = printable.Writer{To: stdout}, printable.Writer{To: stderr}
	started := false
	root := newRootCommand()
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case !started: // cobra refused the arguments before any command ran
		fmt.Fprintf(stderr, "drover: %v\nRun 'drover help' for usage.\n", err)
		if e, ok := errors.AsType[*cli.Error](err); ok {
			return e.Code // set by the command
		}
		return cli.Usage
	}
	printError(stderr, err)
	return cli.CodeOf(err)
}

// printError writes the error of a command as a line, unless it is nil or has no text.
func printError(w io.Writer, err error) {
	if err != nil && err.Error() != "" {
		fmt.Fprintln(w, "drover:", err)
	}
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
		Example:       "  drover init\n  drover check -c drover.yaml\n  drover serve -c drover.yaml\n  drover status",
		Version:       pools.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
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
	checkFirst(root)
	return root
}

// checkFirst makes all commands check their arguments and flags before anything else, so that
// these errors are of usage. An empty argument is one: it is a shell variable that is not set,
// mostly, and a list of names without a name must not stand for all.
func checkFirst(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		checkFirst(sub)
	}
	if cmd.HasSubCommands() { // its argument is the name of one
		return
	}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		for i, arg := range args {
			if strings.TrimSpace(arg) == "" {
				return fmt.Errorf("%s: argument %d is empty (is a variable of the shell not set?)", cmd.CommandPath(), i+1)
			}
		}
		if check != nil {
			if err := check(cmd, args); err != nil {
				return err
			}
		}
		return cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
	}
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
