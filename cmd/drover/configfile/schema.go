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
	cmd := &cobra.Command{Use: "config", Short: "Work on config files"}
	return cli.Group(cmd, &cobra.Command{
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
}
