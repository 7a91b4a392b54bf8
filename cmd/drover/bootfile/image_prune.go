package bootfile

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
	"drover/web/client"
)

// pruneHelp is the help text of drover image prune.
const pruneHelp = `Prune removes old generations of images: of those that are named, or of all. It
keeps of each image

  - the current generation,
  - the newest others, as many as --keep says: for the way back, and for machines that
    are in the middle of a boot that began before the last build,
  - each that a pool names as NAME@sha256:ID,
  - each that a channel has, and the one to which its roll-back leads,
  - each that was ready on a machine last, to which it would fall back,
  - each that the next boot of a machine names, or a boot that has not ended,
  - each that the newest boot of a machine got.

The running server says what pools and machines need. Without an answer prune removes
nothing. It keeps generations that the server does not list, too: then the server runs
on another host, or with another directory.

It shows the generations and asks, unless -y is given. Damaged generations stay, and are
an error that names them: build such an image again, or remove the directory. What killed
builds and removals have left goes without a question.

A machine that has begun to fetch a file gets all of it. Its space is free after that.`

// prune holds the flags of drover image prune.
type prune struct {
	images      string
	keep        int // newest generations, beside the current one
	dryRun, yes bool
	client      cli.Client
	output      cli.Output
}

// pruned is the result of drover image prune.
type pruned struct {
	DryRun  bool         `json:"dryRun,omitempty"` // nothing is removed
	Removed []generation `json:"removed"`
	Kept    []generation `json:"kept"`
	Freed   int64        `json:"freed"` // bytes of the removed generations, and of what killed builds had left
}

func newImagePruneCommand() *cobra.Command {
	var p prune
	cmd := &cobra.Command{
		Use:   "prune [NAME...]",
		Short: "Remove old generations that no machine needs",
		Long:  pruneHelp,
		Example: `  drover image prune --dry-run
  drover image prune debian-12 --keep 1
  drover image prune -y -o json`,
		RunE: func(cmd *cobra.Command, names []string) error { return p.run(cmd, names) },
	}
	f := cmd.Flags()
	f.StringVar(&p.images, "images", defaultImages, "directory of images")
	f.IntVar(&p.keep, "keep", 2, "how many generations of each image to keep beside the current one, the newest ones; at least 1")
	f.BoolVar(&p.dryRun, "dry-run", false, "show what would be removed, and remove nothing")
	_ = cmd.MarkFlagDirname("images")
	p.client.Flags(cmd)
	cli.YesFlag(cmd, &p.yes)
	p.output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

func (p *prune) run(cmd *cobra.Command, names []string) error {
	if err := p.check(names); err != nil {
		return &cli.Error{Code: cli.Usage, Err: err}
	}
	names, all, damaged, err := p.read(names)
	if err != nil {
		return err
	}
	choice, err := p.choose(cmd, all)
	if err != nil {
		return errors.Join(err, damaged)
	}
	if err := p.show(cmd, choice); err != nil {
		return err
	}
	done := pruned{DryRun: p.dryRun, Removed: []generation{}, Kept: []generation{}}
	var failed error
	if p.dryRun {
		done.add(choice...)
	} else if failed, err = p.remove(cmd, names, all, choice, &done); err != nil {
		return errors.Join(err, damaged)
	}
	failed = errors.Join(failed, damaged)
	if failed != nil && len(done.Removed) > 0 && !p.dryRun {
		failed = &cli.Error{Code: cli.Partly, Err: failed}
	}
	return errors.Join(failed, p.output.Print(cmd, done, func(w io.Writer) error { return printPruned(w, &done) }))
}

// check returns an error for a mistake in the arguments.
func (p *prune) check(names []string) error {
	if p.keep < 1 {
		return fmt.Errorf("--keep %d: want at least 1: machines in the middle of a boot may still fetch the generation before the current one", p.keep)
	}
	for _, name := range names {
		_, id, err := imagebuild.SplitRef(name)
		if err != nil {
			return err
		}
		if id != "" {
			return fmt.Errorf("%q: want the name of an image, not one of its generations", name)
		}
	}
	return nil
}

// read returns the generations of images, by default of all. The error damaged names those
// that are damaged.
func (p *prune) read(given []string) (names []string, all []imagebuild.Image, damaged, err error) {
	dir := imagebuild.Open(p.images)
	there, err := dir.Names()
	if err != nil {
		return nil, nil, nil, err
	}
	if names = slices.Compact(slices.Sorted(slices.Values(given))); len(given) == 0 {
		names = there
	}
	for _, name := range names {
		list, bad := dir.Generations(name)
		if len(list) == 0 && bad == nil && len(given) > 0 {
			return nil, nil, nil, fmt.Errorf("%s has no image %q", p.images, name)
		}
		all, damaged = append(all, list...), errors.Join(damaged, bad)
	}
	return names, all, damaged, nil
}

// choose asks the server what it needs, and chooses what stays.
func (p *prune) choose(cmd *cobra.Command, all []imagebuild.Image) ([]generation, error) {
	images, err := cli.Get(cmd.Context(), &p.client, client.Images)
	if err != nil {
		return nil, err
	}
	nodes, err := cli.Get(cmd.Context(), &p.client, client.Nodes, "catchall", "true")
	if err != nil {
		return nil, err
	}
	return needsOf(images, nodes).choose(all, p.keep), nil
}

// show writes what is going to be removed and what stays, and why.
func (p *prune) show(cmd *cobra.Command, choice []generation) error {
	foreign := 0
	for _, g := range choice {
		if g.Why == notListed {
			foreign++
		}
	}
	if foreign > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "drover: the server does not list %d of the generations of %s, which stay: does it run on this host, with this directory?\n",
			foreign, p.images)
	}
	if len(choice) == 0 {
		return nil
	}
	return cli.Table(p.output.Log(cmd), choice, "ACTION\tNAME\tGENERATION\tSIZE\tCREATED\tWHY", func(g generation) []any {
		action := "keep"
		if g.Why == "" {
			action = "remove"
		}
		return []any{action, g.Name, short(g.ID), megabytes(g.Size), g.Created, g.Why}
	})
}

// remove asks, and removes what was chosen and is still not needed after the answer. It goes on
// after an error; failed has all of them. With err nothing was removed.
func (p *prune) remove(cmd *cobra.Command, names []string, all []imagebuild.Image, choice []generation, done *pruned) (failed, err error) {
	if n, size := sum(choice); n > 0 {
		if err := cli.Confirm(cmd, p.yes, fmt.Sprintf("remove %s, %s?", counted(n), megabytes(size))); err != nil {
			return nil, err
		}
		again, err := p.choose(cmd, all)
		if err != nil {
			return nil, err
		}
		choice = both(choice, again)
	}
	dir := imagebuild.Open(p.images)
	for _, name := range names {
		size, err := dir.Clean(name)
		if err != nil && !errors.Is(err, imagebuild.ErrBusy) {
			failed = errors.Join(failed, err)
		}
		done.Freed += size
	}
	for _, g := range choice {
		if g.Why == "" {
			if err := dir.Remove(g.ref()); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
		}
		done.add(g)
	}
	return failed, nil
}

// add adds generations to the result.
func (d *pruned) add(choice ...generation) {
	for _, g := range choice {
		if g.Why != "" {
			d.Kept = append(d.Kept, g)
			continue
		}
		d.Removed, d.Freed = append(d.Removed, g), d.Freed+g.Size
	}
}

func printPruned(w io.Writer, d *pruned) (err error) {
	switch n := len(d.Removed); {
	case n > 0 && d.DryRun:
		_, err = fmt.Fprintf(w, "would remove %s: %s\n", counted(n), megabytes(d.Freed))
	case n > 0:
		_, err = fmt.Fprintf(w, "removed %s: %s freed\n", counted(n), megabytes(d.Freed))
	case d.Freed > 0:
		_, err = fmt.Fprintf(w, "removed what killed builds had left: %s freed\n", megabytes(d.Freed))
	default:
		_, err = fmt.Fprintln(w, "nothing to remove")
	}
	return err
}

// counted returns a number of generations as text.
func counted(n int) string {
	if n == 1 {
		return "1 generation"
	}
	return fmt.Sprintf("%d generations", n)
}
