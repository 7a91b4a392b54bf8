package bootfile

import (
	"io"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
)

// promoteHelp is the help text of drover image promote.
const promoteHelp = `Promote makes a generation the current one of its image: the one that a pool gets
which names the image alone. Each boot after that gets it; a boot that has begun keeps the
generation that its script named. Machines that run keep theirs until they reboot.

It is the way on from drover image build --stage, and the way back from a generation that
does not work: promote the one before it. Twelve digits of the ID are enough. A generation
that is damaged is refused.`

func newImagePromoteCommand() *cobra.Command {
	var images string
	var output cli.Output
	cmd := &cobra.Command{
		Use:     "promote NAME@ID",
		Short:   "Make a generation the current one, forward or back",
		Long:    promoteHelp,
		Example: "  drover image promote debian-12@5f2a7c1e9b04",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := imagebuild.SplitRef(args[0]); err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			image, err := imagebuild.Open(images).SetCurrent(args[0])
			if err != nil {
				return err
			}
			return output.Print(cmd, image, func(w io.Writer) error { return printImage(w, image) })
		},
	}
	cmd.Flags().StringVar(&images, "images", defaultImages, "directory of images")
	_ = cmd.MarkFlagDirname("images")
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}
