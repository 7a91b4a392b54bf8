package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"drover/imagebuild"
	"drover/internal/printable"
	"drover/pools"
)

// Change is what a move of a channel, or a mark, has changed.
type Change struct {
	pools.Channel
	Before string // the generation that the channel had; empty: none
}

// ChannelList returns all channels, by image and name.
func (c *Catalog) ChannelList() (all []pools.Channel) {
	decided := c.Channels.All()
	for _, image := range slices.Sorted(maps.Keys(decided)) {
		for _, name := range slices.Sorted(maps.Keys(decided[image].Channels)) {
			all = append(all, channel(image, name, decided[image]))
		}
	}
	return all
}

func channel(image, name string, c pools.ImageChannels) pools.Channel {
	out := pools.Channel{Image: image, Name: name, Current: c.Current(name), History: slices.Clone(c.Channels[name])}
	if back := c.Back(name); len(back) > 0 {
		out.Previous = back[0]
	}
	return out
}

// Promote makes a generation the current one of a channel, durably, after reading all of it; with dry it
// only says what would be. The error wraps [pools.ErrNoImage] or [pools.ErrBadImage].
func (c *Catalog) Promote(r pools.PromoteRequest, by string, dry bool) (Change, error) {
	to := cmp.Or(r.To, pools.StableChannel)
	if !pools.ChannelName(to) {
		return Change{}, pools.Hint("a letter, then up to 31 lower-case letters, digits, '.', '_' and '-'", "%q is not the name of a channel", printable.Line(to, 40))
	}
	if err := checkWhy(r.Why); err != nil {
		return Change{}, err
	}
	image, err := c.promoted(r.Image)
	if err != nil {
		return Change{}, err
	}
	return c.move(image.Name, to, dry, func(now pools.ImageChannels) (pools.Promotion, error) {
		p := pools.Promotion{ID: image.ID, Time: time.Now().UTC().Truncate(time.Second), By: by, Why: r.Why}
		mark, bad := now.Bad[image.ID]
		switch {
		case bad && !r.Force:
			return p, fmt.Errorf("image %s was marked bad by %s: %q; --force promotes it all the same: %w", pools.ShortImage(image.Ref(), ""), mark.By, mark.Why, pools.ErrBadImage)
		case now.Channels[to] == nil && len(now.Channels) >= pools.MaxChannels:
			return p, fmt.Errorf("image %q has %d channels, and cannot have more: %w", image.Name, pools.MaxChannels, pools.ErrBadImage)
		}
		return p, nil
	})
}

// promoted returns the generation that a request names. A name alone is the last build.
func (c *Catalog) promoted(ref string) (image imagebuild.Image, err error) {
	name, channel, id := pools.SplitImage(ref)
	if channel != "" && !pools.ChannelName(channel) {
		return image, badRef(ref)
	}
	if _, _, err := imagebuild.SplitRef(name); err != nil {
		return image, badRef(ref)
	}
	if channel != "" {
		image, err = c.Lookup(ref)
	} else if _, _, bad := imagebuild.SplitRef(ref); bad != nil && id != "" {
		return image, badRef(ref)
	} else {
		image, err = c.Dir.Lookup(ref)
	}
	return image, c.check(ref, image, err)
}

func badRef(ref string) error {
	return pools.Hint("NAME@ID with 12 digits or more, NAME:CHANNEL or NAME", "%q is not an image", printable.Line(ref, 100))
}

// check returns an error unless a generation was found and is whole.
func (c *Catalog) check(ref string, image imagebuild.Image, err error) error {
	if err == nil {
		err = image.Verify()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", pools.ErrNoImage, err)
	}
	return fmt.Errorf("%s: %w: %w: build it again", ref, pools.ErrBadImage, err)
}

// Rollback moves a channel back to the generation that it had before the current one, and that is
// neither bad nor removed; with dry it only says what would be. The error wraps [pools.ErrNoImage].
func (c *Catalog) Rollback(r pools.RollbackRequest, by string, dry bool) (Change, error) {
	name, from, id := pools.SplitImage(r.Image)
	from = cmp.Or(from, pools.StableChannel)
	if id != "" || !pools.ChannelName(from) {
		return Change{}, pools.Hint("NAME or NAME:CHANNEL", "%q names no channel of an image", printable.Line(r.Image, 100))
	}
	if err := checkWhy(r.Why); err != nil {
		return Change{}, err
	}
	return c.move(name, from, dry, func(now pools.ImageChannels) (p pools.Promotion, err error) {
		p = pools.Promotion{Time: time.Now().UTC().Truncate(time.Second), By: by, Why: r.Why, Back: true}
		if now.Channels[from] == nil {
			return p, fmt.Errorf("%w: image %q has no channel %q, which drover image promote makes", pools.ErrNoImage, printable.Line(name, 100), from)
		}
		gone := []error{fmt.Errorf("%w: channel %q of the image %q has no earlier generation: drover image promote %s@ID chooses one", pools.ErrNoImage, from, name, name)}
		for _, p.ID = range now.Back(from) {
			ref := name + "@sha256:" + p.ID
			image, err := c.Dir.Lookup(ref)
			if err = c.check(ref, image, err); err == nil {
				return p, nil
			}
			gone = append(gone, err)
		}
		return p, errors.Join(gone...)
	})
}

// move puts a promotion into the history of a channel.
func (c *Catalog) move(image, name string, dry bool, choose func(pools.ImageChannels) (pools.Promotion, error)) (out Change, err error) {
	edit := func(now pools.ImageChannels) (pools.ImageChannels, error) {
		p, err := choose(now)
		if err != nil {
			return now, err
		}
		out.Before = now.Current(name)
		if out.Before == "" && name == pools.StableChannel {
			// What the name has meant until now is the way back.
			if last, err := c.Dir.Lookup(image); err == nil && last.ID != p.ID {
				now, out.Before = now.With(name, pools.Promotion{ID: last.ID, Time: last.Created, Why: "the last build before the first promotion"}), last.ID
			}
		}
		if now.Current(name) != p.ID {
			now = now.With(name, p)
		}
		out.Channel = channel(image, name, now)
		return now, nil
	}
	if dry {
		_, err = edit(c.Channels.Of(image))
		return out, err
	}
	if err = c.Channels.Change(image, edit); err != nil {
		return out, err
	}
	// drover image prune may have removed it meanwhile: then the way back is the error's.
	if _, err = c.Dir.Lookup(image + "@sha256:" + out.Current); err != nil {
		return out, fmt.Errorf("%w: %w; the channel %q has it now: promote another one", pools.ErrNoImage, err, name)
	}
	if c.OnPromote != nil {
		c.OnPromote(image)
	}
	return out, nil
}

// Mark marks a generation bad, or good again; with dry it only checks the request. The error wraps
// [pools.ErrNoImage].
func (c *Catalog) Mark(r pools.MarkRequest, by string, dry bool) error {
	name, _, id := pools.SplitImage(r.Image)
	if _, _, err := imagebuild.SplitRef(r.Image); err != nil || id == "" {
		return badRef(r.Image)
	}
	if err := checkWhy(r.Why); err != nil {
		return err
	}
	image, err := c.Dir.Lookup(r.Image)
	if !r.Good && err != nil {
		return fmt.Errorf("%w: %w", pools.ErrNoImage, err)
	}
	if err == nil {
		id = image.ID
	}
	edit := func(now pools.ImageChannels) (pools.ImageChannels, error) {
		if r.Good {
			for marked := range now.Bad { // also of one that is gone
				if strings.HasPrefix(marked, id) {
					now = now.Marked(marked, nil)
				}
			}
			return now, nil
		}
		if len(now.Bad) >= pools.MaxMarks {
			return now, fmt.Errorf("image %q has %d bad generations, and cannot have more: remove the marks of those that are gone: %w", name, pools.MaxMarks, pools.ErrBadImage)
		}
		return now.Marked(id, &pools.ImageMark{Time: time.Now().UTC().Truncate(time.Second), By: by, Why: r.Why}), nil
	}
	if dry {
		_, err := edit(c.Channels.Of(name))
		return err
	}
	return c.Channels.Change(name, edit)
}

// IsBad reports whether a generation is marked bad.
func (c *Catalog) IsBad(image, id string) bool {
	_, bad := c.Channels.Of(image).Bad[id]
	return bad
}

func checkWhy(why string) error {
	if len(why) > pools.MaxWhy || why != printable.Text(why) {
		return pools.Hint(fmt.Sprintf("%d bytes of text at most, in one line", pools.MaxWhy), "the reason %q cannot be kept", printable.Line(why, 60))
	}
	return nil
}
