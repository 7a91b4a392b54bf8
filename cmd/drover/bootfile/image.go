// Package bootfile has the commands for the files that machines boot from: node images,
// loaders, and boot media.
package bootfile

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
	"drover/internal/printable"
)

const defaultImages = cli.DefaultState + "/images"

// Commands returns the commands image, loaders and media of a version of drover.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{newImageCommand(version), newLoadersCommand(), newMediaCommand()}
}

func newImageCommand(version string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build, list, show, promote and prune node images",
		Long: `An image is a kernel, an initrd and a root file system for nodes. Build makes
one from a container image. A pool of the config names it as NAME, which is its
current generation, or as NAME@sha256:ID, which never changes. Twelve digits of an ID
are enough.`,
	}
	return cli.Group(cmd, newImageBuildCommand(version), newImageListCommand(), newImageShowCommand(), newImagePromoteCommand(), newImagePruneCommand())
}

func newImageListCommand() *cobra.Command {
	var images string
	var output cli.Output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List images and their generations",
		Example: "  drover image list\n  drover image list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := imagebuild.Open(images).List()
			if list == nil {
				list = []imagebuild.Image{}
			}
			// Damaged generations are an error, but not the end of the others.
			return errors.Join(err, output.Print(cmd, list, func(w io.Writer) error { return printImageTable(w, list) }))
		},
	}
	cmd.Flags().StringVar(&images, "images", defaultImages, "directory of images")
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

func newImageShowCommand() *cobra.Command {
	var images string
	var output cli.Output
	var verify bool
	cmd := &cobra.Command{
		Use:     "show NAME[@sha256:ID]",
		Short:   "Show the manifest of an image",
		Example: "  drover image show debian-12\n  drover image show debian-12 --verify -o yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := imagebuild.SplitRef(args[0]); err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			image, err := imagebuild.Open(images).Lookup(args[0])
			if err != nil {
				return err
			}
			if verify {
				if err := image.Verify(); err != nil {
					return err
				}
			}
			return output.Print(cmd, image, func(w io.Writer) error { return printImage(w, image) })
		},
	}
	cmd.Flags().StringVar(&images, "images", defaultImages, "directory of images")
	cmd.Flags().BoolVar(&verify, "verify", false, "read all files and compare their digests")
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

func printImage(w io.Writer, image imagebuild.Image) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "image\t%s\n", image.Ref())
	fmt.Fprintf(tw, "current\t%t\n", image.Current)
	fmt.Fprintf(tw, "created\t%s\n", image.Created.Format(time.RFC3339))
	fmt.Fprintf(tw, "source\t%s\n", image.Source)
	if image.SourceDigest != "" {
		fmt.Fprintf(tw, "source digest\t%s\n", image.SourceDigest)
	}
	fmt.Fprintf(tw, "platform\t%s\n", image.Platform)
	fmt.Fprintf(tw, "kernel version\t%s\n", printable.Text(image.KernelVersion))
	for _, name := range []string{imagebuild.KernelFile, imagebuild.InitrdFile, imagebuild.SquashfsFile} {
		f := image.Files[name]
		fmt.Fprintf(tw, "%s\t%s, sha256:%s\n", name, megabytes(f.Size), f.SHA256)
	}
	fmt.Fprintf(tw, "directory\t%s\n", image.Path)
	return tw.Flush()
}

func printImageTable(w io.Writer, list []imagebuild.Image) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tGENERATION\tCURRENT\tKERNEL\tROOT\tCREATED")
	for _, image := range list {
		current := ""
		if image.Current {
			current = "*"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", image.Name, image.ID[:12], current, printable.Text(image.KernelVersion),
			megabytes(image.Files[imagebuild.SquashfsFile].Size), image.Created.Format(time.RFC3339))
	}
	return tw.Flush()
}

// megabytes renders a size in MB of 10^6 bytes.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// progressPrinter writes the progress of a build in lines, one every two seconds: often
// enough for a person, seldom enough for the log of a CI.
type progressPrinter struct {
	w     io.Writer
	now   func() time.Time
	start time.Time // of the phase
	shown time.Time
	last  imagebuild.Progress
}

// progressInterval is the time between two lines of one phase.
const progressInterval = 2 * time.Second

func newProgressPrinter(w io.Writer, now func() time.Time) *progressPrinter {
	return &progressPrinter{w: w, now: now}
}

func (p *progressPrinter) show(now imagebuild.Progress) {
	t := p.now()
	if now.Phase != p.last.Phase {
		p.end()
		p.start, p.shown = t, t
	}
	p.last = now
	if t.Sub(p.shown) >= progressInterval {
		p.shown = t
		p.line(t)
	}
}

// end closes the last phase.
func (p *progressPrinter) end() {
	if p.last.Phase != "" {
		p.line(p.now())
	}
	p.last = imagebuild.Progress{}
}

func (p *progressPrinter) line(t time.Time) {
	text := p.last.Phase + ": " + megabytes(p.last.Done)
	if p.last.Total > 0 {
		text += fmt.Sprintf(" of %s (%d%%)", megabytes(p.last.Total), 100*p.last.Done/p.last.Total)
	}
	if sec := t.Sub(p.start).Seconds(); sec > 0 {
		text += fmt.Sprintf(", %.1f s, %.1f MB/s", sec, float64(p.last.Done)/1e6/sec)
	}
	fmt.Fprintln(p.w, text)
}
