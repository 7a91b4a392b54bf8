package node

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/web/client"
)

func newNodeNextBootCommand(c *cli.Client) *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "next-boot NAME local|rescue|image=REF|clear",
		Short: "Set what a node boots next, once",
		Long: `Next-boot changes the next boot of a node, once: from its local disk, into a
rescue shell on its console, or another image, by name or NAME@sha256:DIGEST. The
boot that gets its script uses the setting up; until then drover node show and
drover explain --live show it. Next-boot restarts nothing: use drover power.`,
		Example: `  drover node next-boot m1c29 local
  drover node next-boot m1c29 image=debian-13
  drover node next-boot m1c29 clear`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, what := args[0], args[1]
			if what == "clear" {
				if _, err := cli.Send(cmd.Context(), c, client.ClearNextBoot, client.None{}, name); err != nil {
					return err
				}
				return printNext(cmd, &output, name, "", "boots as its pool says")
			}
			next, err := pools.ParseNextBoot(what)
			if err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			if _, err := cli.Send(cmd.Context(), c, client.SetNextBoot, pools.NextBootRequest{NextBoot: string(next)}, name); err != nil {
				return err
			}
			return printNext(cmd, &output, name+":", next, "next boot "+string(next))
		},
	}
	output.Flag(cmd, "text", "name", "json", "yaml")
	return cmd
}

// printNext prints the next boot of a node, that it now has.
func printNext(cmd *cobra.Command, output *cli.Output, subject string, next pools.NextBoot, text string) error {
	name := strings.TrimSuffix(subject, ":")
	return output.PrintNamed(cmd, map[string]any{"name": name, "nextBoot": next}, []string{name}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, subject, text)
		return err
	})
}
