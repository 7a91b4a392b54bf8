package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/explain"
	"drover/cmd/drover/hardware"

	"github.com/spf13/cobra"
)

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
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
	case !started: // cobra refused the words before any command ran
		fmt.Fprintf(stderr, "drover: %v\nRun 'drover help' for usage.\n", err)
		if e, ok := errors.AsType[*cli.Error](err); ok {
			return e.Code // of a command with codes of its own
		}
		return cli.Usage
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(stderr, "drover:", text)
	}
	return cli.CodeOf(err)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "drover",
		Short: "Netboot bare-metal servers into the right Kubernetes cluster",
		Long: `drover brings diskless bare-metal servers into the right Kubernetes cluster:
it answers their DHCP, hands them a loader, a kernel and a root image, tells
them who they are, and lets them join.

Exit codes: 0 done, 1 failed or invalid, 2 usage, 3 partly done,
4 server unreachable, 5 refused.`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newServeCommand(), newCheckCommand(), explain.NewCommand(), newImageCommand(), newClusterCommand(),
		newNodeCommand(), newBootCommand(), newLeaseCommand(), newUnknownCommand(), newTokenCommand(),
		newLoadersCommand(), newMediaCommand(),
	)
	root.AddCommand(hardware.Commands()...)
	return root
}

// version is the module's, as the Go tool stamped it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
