package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// The default paths of the config file and of the state directory.
const (
	DefaultConfig = "/etc/drover/drover.yaml"
	DefaultState  = "/var/lib/drover"
)

// ConfigFlag adds -c/--config to a command.
func ConfigFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "config", "c", DefaultConfig, "the farm's config file")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}

// LoadConfig loads a config, together with nodes that were added over the API. It writes
// each mistake to stderr as a line.
func LoadConfig(file string, stderr io.Writer, added ...pools.PoolNode) (*resolve.Farm, error) {
	farm, err := config.Load(file, added...)
	return farm, PrintMistakes(file, err, stderr)
}

// PrintMistakes writes the mistakes in err to stderr and returns an error with their
// number. It returns any other error unchanged.
func PrintMistakes(file string, err error, stderr io.Writer) error {
	mistakes, ok := errors.AsType[mistake.Errors](err)
	if !ok {
		return err
	}
	fmt.Fprintln(stderr, mistakes)
	if len(mistakes) == 1 {
		return fmt.Errorf("%s: 1 mistake", file)
	}
	return fmt.Errorf("%s: %d mistakes", file, len(mistakes))
}

// Group makes cmd a command with these subcommands and no action of its own. Unless it has
// examples, they are the first ones of the subcommands.
func Group(cmd *cobra.Command, sub ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs // an unknown subcommand is an error, not ignored
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(sub...)
	if cmd.Example != "" {
		return cmd
	}
	var lines []string
	for _, s := range sub {
		first, _, _ := strings.Cut(s.Example, "\n")
		lines = append(lines, strings.TrimSuffix(first, " \\"))
	}
	cmd.Example = strings.Join(lines, "\n")
	return cmd
}
