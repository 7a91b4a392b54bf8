package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drover/internal/printable"
)

// Execute runs a program's command line and returns its exit code. An error before any command
// runs is one of usage.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	// What servers, chassis and machines say is in tables, errors and logs: no output goes
	// past these writers.
	stdout, stderr = printable.Writer{To: stdout}, printable.Writer{To: stderr}
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	checkFirst(root)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case !started: // cobra refused the arguments before any command ran
		if other := instead(root, args); len(other) > 0 && strings.HasPrefix(err.Error(), "unknown command") {
			unknown, _, _ := strings.Cut(err.Error(), "\n")
			err = fmt.Errorf("%s: drover says: %s", unknown, strings.Join(other, " or "))
		}
		fmt.Fprintf(stderr, "drover: %v\nRun 'drover help' for usage.\n", err)
		if e, ok := errors.AsType[*Error](err); ok {
			return e.Code // set by the command
		}
		return Usage
	}
	PrintError(stderr, err)
	return CodeOf(err)
}

// PrintError writes the error of a command as a line, unless it is nil or has no text.
func PrintError(w io.Writer, err error) {
	if err != nil && err.Error() != "" {
		fmt.Fprintln(w, "drover:", err)
	}
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
