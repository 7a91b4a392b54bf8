package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand returns the hidden command that writes the manual pages of a package.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands to a directory",
		Example: "  drover man /usr/share/man/man1",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // no date: the same sources make the same pages
			header := &doc.GenManHeader{Title: "DROVER", Section: "1", Source: "drover", Manual: "drover"}
			return doc.GenManTree(root, header, args[0])
		},
	}
}
