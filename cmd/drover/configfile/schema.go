package configfile

import (
	_ "embed" // the schema

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
)

// schema is the JSON Schema of the config. The tests of deploy/crd make it from the types.
//
//go:embed schema.json
var schema []byte

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the configs that were active, go back to one, print the schema"}
	c := &cli.Client{}
	cmd = cli.Group(cmd, newHistoryCommand(c), newShowCommand(c), newHistoryDiffCommand(c), newRollbackCommand(c), &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the config, for editors",
		Long: `Schema prints the JSON Schema of the config file. Editors complete and check keys with it;
with yaml-language-server put this line first into the config:

  # yaml-language-server: $schema=drover.schema.json

It knows keys and kinds of values. drover check knows the rest.`,
		Example: "  drover config schema > drover.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(schema)
			return err
		},
	})
	c.Flags(cmd)
	return cmd
}
