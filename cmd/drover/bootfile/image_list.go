package bootfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
	"drover/internal/printable"
	"drover/pools"
	"drover/web/client"
)

// listed is a generation of an image, and what the running server says of it.
type listed struct {
	imagebuild.Image
	Channels []string         `json:"channels,omitempty"` // whose current generation it is
	Previous []string         `json:"previous,omitempty"` // of which a roll-back leads to it
	Bad      *pools.ImageMark `json:"bad,omitempty"`
	Machines *int             `json:"machines,omitempty"` // whose newest boot got it; nil: the server did not say
	History  []pools.Channel  `json:"history,omitempty"`  // of the image, for show
}

// ask adds what the running server says. Without an answer the generations are those of the directory
// alone, and the error says so.
func ask(ctx context.Context, c *cli.Client, list []listed) error {
	ctx, cancel := context.WithTimeout(ctx, hintWait)
	defer cancel()
	images, err := cli.Get(ctx, c, client.Images)
	if err != nil {
		return fmt.Errorf("channels and machines are not shown: %w", err)
	}
	at := map[string]*pools.ImageInfo{}
	for i := range images {
		at[images[i].Name+"@sha256:"+images[i].ID] = &images[i]
	}
	for i := range list {
		l := &list[i]
		if info := at[l.Ref()]; info != nil {
			l.Current, l.Channels, l.Previous, l.Bad, l.Machines = info.Current, info.Channels, info.Previous, info.Bad, &info.Machines
		}
	}
	return nil
}

func newImageListCommand() *cobra.Command {
	var images string
	var c cli.Client
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List images and their generations",
		Long: `List lists the generations of the images in a directory, each with its channels and
the number of machines whose newest boot got it, as the running server says. Without a
server that answers it lists the directory alone.`,
		Example: "  drover image list\n  drover image list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := imagebuild.Open(images).List()
			list := []listed{} // [] rather than null
			for i := range all {
				list = append(list, listed{Image: all[i]})
			}
			if len(list) > 0 {
				note(cmd, ask(cmd.Context(), &c, list))
			}
			// Damaged generations are an error, but not the end of the others.
			return errors.Join(err, output.Print(cmd, list, func(w io.Writer) error { return printImageTable(w, list) }))
		},
	}
	cmd.Flags().StringVar(&images, "images", defaultImages, "directory of images")
	c.Flags(cmd)
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// note prints an error that does not end a command.
func note(cmd *cobra.Command, err error) {
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "drover:", printable.Text(err.Error()))
	}
}

func newImageShowCommand() *cobra.Command {
	var images string
	var c cli.Client
	var output cli.Output
	var verify bool
	cmd := &cobra.Command{
		Use:     "show NAME[@ID|:CHANNEL]",
		Short:   "Show the manifest of an image, and the history of its channels",
		Example: "  drover image show debian-12\n  drover image show debian-12:canary --verify -o yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			image, channels, err := find(cmd, &c, imagebuild.Open(images), args[0])
			if err != nil {
				return err
			}
			if verify {
				if err := image.Verify(); err != nil {
					return err
				}
			}
			list := []listed{{Image: image, History: channels}}
			if channels != nil {
				note(cmd, ask(cmd.Context(), &c, list))
			}
			return output.Print(cmd, list[0], func(w io.Writer) error {
				return errors.Join(printImage(w, list[0]), printHistory(w, channels))
			})
		},
	}
	cmd.Flags().StringVar(&images, "images", defaultImages, "directory of images")
	cmd.Flags().BoolVar(&verify, "verify", false, "read all files and compare their digests")
	c.Flags(cmd)
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// find returns the generation that a reference means, and the channels of its image, as the running
// server says; nil without an answer. Only NAME:CHANNEL needs one.
func find(cmd *cobra.Command, c *cli.Client, dir *imagebuild.Dir, ref string) (image imagebuild.Image, channels []pools.Channel, err error) {
	name, channel, id := pools.SplitImage(ref)
	plain := ref
	if channel != "" {
		plain = name
	}
	if _, _, err := imagebuild.SplitRef(plain); err != nil {
		return image, nil, &cli.Error{Code: cli.Usage, Err: err}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), hintWait)
	defer cancel()
	channels, err = cli.Get(ctx, c, client.Channels, "image", name)
	if err != nil && channel != "" {
		return image, nil, err
	}
	if err == nil && channels == nil {
		channels = []pools.Channel{}
	}
	missing := channel != "" && channel != pools.StableChannel
	for _, other := range channels {
		if id == "" && (other.Name == channel || channel == "" && other.Name == pools.StableChannel) {
			plain, missing = name+"@sha256:"+other.Current, false
		}
	}
	if missing {
		return image, nil, fmt.Errorf("image %q has no channel %q: drover image promote %s@ID --to %s makes it", name, channel, name, channel)
	}
	image, err = dir.Lookup(plain)
	return image, channels, err
}

func printImage(w io.Writer, image listed) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "image\t%s\n", image.Ref())
	fmt.Fprintf(tw, "current\t%t\n", image.Current)
	if len(image.Channels) > 0 {
		fmt.Fprintf(tw, "channels\t%s\n", strings.Join(image.Channels, " "))
	}
	if image.Bad != nil {
		fmt.Fprintf(tw, "bad\t%s\n", printable.Text(image.Bad.Why+" ("+image.Bad.By+", "+image.Bad.Time.Format(time.RFC3339)+")"))
	}
	if image.Machines != nil {
		fmt.Fprintf(tw, "machines\t%d\n", *image.Machines)
	}
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

func printImageTable(w io.Writer, list []listed) error {
	return cli.Table(w, list, "NAME\tGENERATION\tCURRENT\tCHANNELS\tMACHINES\tKERNEL\tROOT\tCREATED", func(image listed) []any {
		current, machines := "", ""
		if image.Current {
			current = "*"
		}
		if image.Machines != nil {
			machines = strconv.Itoa(*image.Machines)
		}
		channels := strings.Join(image.Channels, ",")
		if image.Bad != nil {
			channels = strings.TrimSpace(channels + " (bad)")
		}
		return []any{image.Name, image.ID[:12], current, channels, machines, printable.Text(image.KernelVersion),
			megabytes(image.Files[imagebuild.SquashfsFile].Size), image.Created.Format(time.RFC3339)}
	})
}
