package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"drover/pools"
	"drover/pools/config"
)

// Where drover keeps things when no flag says otherwise.
const (
	DefaultConfig = "/etc/drover/drover.yaml"
	DefaultState  = "/var/lib/drover"
)

// ConfigFlag adds -c/--config to a command.
func ConfigFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "config", "c", DefaultConfig, "the farm's config file")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}

// LoadConfig loads a config, together with nodes added over the API; its
// mistakes go to stderr, a line each.
func LoadConfig(file string, stderr io.Writer, added ...pools.PoolNode) (*pools.Farm, error) {
	farm, err := config.Load(file, added...)
	return farm, PrintMistakes(file, err, stderr)
}

// PrintMistakes writes the mistakes of a config to stderr and returns the sum of
// them; other errors it returns as they are.
func PrintMistakes(file string, err error, stderr io.Writer) error {
	mistakes, ok := errors.AsType[config.Errors](err)
	if !ok {
		return err
	}
	fmt.Fprintln(stderr, mistakes)
	if len(mistakes) == 1 {
		return fmt.Errorf("%s: 1 mistake", file)
	}
	return fmt.Errorf("%s: %d mistakes", file, len(mistakes))
}

// Group makes cmd a command that only has subcommands.
func Group(cmd *cobra.Command, sub ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs // an unknown subcommand is an error, not ignored
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(sub...)
	return cmd
}
