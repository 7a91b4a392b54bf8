// Package bootfile has the commands for the files that machines boot from: node images,
// loaders, and boot media.
package bootfile

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
)

const defaultImages = cli.DefaultState + "/images"

// Commands returns the commands image, loaders and media of a version of drover.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{newImageCommand(version), newLoadersCommand(), newMediaCommand()}
}

func newImageCommand(version string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build, list, promote, roll back and prune node images",
		Long: `An image is a kernel, an initrd and a root file system for nodes. Build makes
one from a container image. A pool of the config names it as NAME, which is the generation
of its channel stable, as NAME:CHANNEL, or as NAME@sha256:ID, which never changes. Twelve
digits of an ID are enough.`,
	}
	return cli.Group(cmd, newImageBuildCommand(version), newImageListCommand(), newImageShowCommand(), newImagePromoteCommand(), newImageRollbackCommand(),
		newImageMarkCommand(), newImagePruneCommand())
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
