package bootfile

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/printable"
	"drover/pools"
	"drover/web/client"
)

// promoteHelp is the help text of drover image promote.
const promoteHelp = `Promote makes a generation of an image the current one of a channel, of stable by
default: the one that a pool gets which names the image alone. Another channel is for pools
and next boots that name it, as debian-12:canary. Each boot after that gets it; a boot that
has begun keeps the generation that its script named, and machines that run keep theirs
until they reboot.

NAME@ID names the generation, by twelve digits of its ID or more; NAME:CHANNEL the current
one of a channel; NAME the last build. Channels are in the state of the running server. Until
the first promotion to stable a name means the last build; after it, a build alone changes
nothing.

A generation that is damaged is refused, and one that is marked bad without --force. Nodes
that fell back to an earlier generation boot what their pools say again.`

func newImagePromoteCommand() *cobra.Command {
	var r pools.PromoteRequest
	var c cli.Client
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "promote NAME[@ID|:CHANNEL]",
		Short: "Make a generation the current one of a channel",
		Long:  promoteHelp,
		Example: `  drover image promote debian-12:canary --why "three nodes ran it for a day"
  drover image promote debian-12@5f2a7c1e9b04 --to canary`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Image = args[0]
			return move(cmd, &c, client.Promote, r, &output)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.To, "to", pools.StableChannel, "the `channel`")
	f.StringVar(&r.Why, "why", "", "a `text` for the history")
	f.BoolVar(&r.Force, "force", false, "also a generation that is marked bad")
	c.Flags(cmd)
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// move sends a change of a channel, and prints what the channel has then.
func move[In any](cmd *cobra.Command, c *cli.Client, change client.Change[In, pools.Channel], in In, output *cli.Output) error {
	channel, err := cli.Send(cmd.Context(), c, change, in)
	if err != nil {
		return err
	}
	return output.Print(cmd, channel, func(w io.Writer) error { return printMoved(w, channel) })
}

func newImageRollbackCommand() *cobra.Command {
	var r pools.RollbackRequest
	var c cli.Client
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "rollback NAME[:CHANNEL]",
		Short: "Move a channel back to the generation before",
		Long: `Rollback takes the last promotion of a channel back: each boot after that gets the
generation that was current before. A second roll-back leads further back, never to what the
first one has left. Generations that are marked bad, damaged or removed are skipped.`,
		Example: "  drover image rollback debian-12 --why \"no network on m1c07\"\n  drover image rollback debian-12:canary",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Image = args[0]
			return move(cmd, &c, client.Rollback, r, &output)
		},
	}
	cmd.Flags().StringVar(&r.Why, "why", "", "a `text` for the history")
	c.Flags(cmd)
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

func newImageMarkCommand() *cobra.Command {
	var r pools.MarkRequest
	var c cli.Client
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "mark NAME@ID bad|good",
		Short: "Mark a generation bad, so that it is not promoted",
		Long: `Mark marks a generation bad: promote refuses it without --force, a roll-back and the
fall-back of nodes skip it. Channels that have it keep it: roll them back. "good" takes the
mark away.`,
		Example:   "  drover image mark debian-12@5f2a7c1e9b04 bad --why \"panics on Gen8\"",
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"bad", "good"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "bad" && args[1] != "good" {
				return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("%q: want bad or good", args[1])}
			}
			r.Image, r.Good = args[0], args[1] == "good"
			if _, err := cli.Send(cmd.Context(), &c, client.MarkImage, r); err != nil {
				return err
			}
			return output.Print(cmd, r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: marked %s\n", args[0], args[1])
				return err
			})
		},
	}
	cmd.Flags().StringVar(&r.Why, "why", "", "a `text` that promote shows")
	c.Flags(cmd)
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// printMoved prints what a channel has, and its way back.
func printMoved(w io.Writer, c pools.Channel) error {
	back := "there is no way back"
	if c.Previous != "" {
		back = "a roll-back leads to " + pools.ShortID(c.Previous)
	}
	_, err := fmt.Fprintf(w, "%s:%s is %s@%s; %s\n", c.Image, c.Name, c.Image, pools.ShortID(c.Current), back)
	return err
}

// printHistory prints what the channels of an image have had.
func printHistory(w io.Writer, channels []pools.Channel) error {
	type line struct {
		channel string
		current bool
		pools.Promotion
	}
	var all []line
	for _, c := range channels {
		for i, p := range c.History {
			all = append(all, line{c.Name, i == 0, p})
		}
	}
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return cli.Table(w, all, "CHANNEL\tGENERATION\tSINCE\tBY\tWHY", func(l line) []any {
		how := printable.Text(l.Why)
		if l.Back {
			how = cmp.Or(how, "roll-back")
		}
		return []any{l.channel, pools.ShortID(l.ID), l.Time.UTC().Format(time.DateTime), printable.Text(l.By), how}
	})
}

// promotion is what drover image build does with a generation after it was built.
type promotion struct {
	channel string // empty: none
	stable  bool   // --promote
	why     string
	client  cli.Client
}

func (p *promotion) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.channel, "channel", "", "promote the new generation to this `channel` of the running server")
	f.BoolVar(&p.stable, "promote", false, "promote it to the channel stable")
	f.StringVar(&p.why, "why", "", "with --channel or --promote: a `text` for the history")
	cmd.MarkFlagsMutuallyExclusive("channel", "promote", "stage")
	p.client.Flags(cmd)
}

// check completes the flags. It asks for the server before a build of many minutes.
func (p *promotion) check(ctx context.Context) error {
	if p.stable {
		p.channel = pools.StableChannel
	}
	switch {
	case p.channel == "" && p.why != "":
		return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--why is for --channel and --promote")}
	case p.channel == "":
		return nil
	case !pools.ChannelName(p.channel):
		return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--channel %q: want a letter, then up to 31 lower-case letters, digits, '.', '_' and '-'", p.channel)}
	}
	_, err := cli.Get(ctx, &p.client, client.Version)
	return err
}

// do promotes a generation that was built, and says on w what became of it.
func (p *promotion) do(ctx context.Context, w io.Writer, ref string) error {
	if p.channel == "" {
		return nil
	}
	c, err := cli.Send(ctx, &p.client, client.Promote, pools.PromoteRequest{Image: ref, To: p.channel, Why: p.why})
	if err != nil {
		return fmt.Errorf("%s was built, and is not promoted: %w", pools.ShortImage(ref, ""), err)
	}
	return printMoved(w, c)
}

// hintWait limits the question for the channels of a server that may not be there.
const hintWait = 5 * time.Second

// hint says on w if a build is not live, since a channel decides what its name means.
func (p *promotion) hint(ctx context.Context, w io.Writer, name, id string) {
	ctx, cancel := context.WithTimeout(ctx, hintWait)
	defer cancel()
	channels, err := cli.Get(ctx, &p.client, client.Channels, "image", name, "name", pools.StableChannel)
	if err == nil && len(channels) == 1 && channels[0].Current != id {
		fmt.Fprintf(w, "drover: %s is its channel stable, which has %s: drover image promote %s@%s makes the new generation live\n",
			name, pools.ShortID(channels[0].Current), name, pools.ShortID(id))
	}
}
