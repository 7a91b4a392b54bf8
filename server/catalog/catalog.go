// Package catalog says which generation of an image a reference means now: by the channels of the
// image, or, until the first promotion, by the folder of images. [Catalog.Lookup] is asked once for
// each boot; [Catalog.Generations] is for lists, which must not wait for a disk that hangs.
// [Catalog.Promote] and [Catalog.Rollback] move a channel.
//
// The package does not know which machine boots.
package catalog

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"drover/imagebuild"
	"drover/pools"
	"drover/pools/resolve"
)

// Farm returns the farm in force.
type Farm interface{ Farm() *resolve.Farm }

// Channels keeps what is decided about the generations of images.
type Channels interface {
	Of(image string) pools.ImageChannels
	All() map[string]pools.ImageChannels
	// Change replaces the value of an image by the result of edit, durably. After an error nothing
	// has changed.
	Change(image string, edit func(pools.ImageChannels) (pools.ImageChannels, error)) error
}

// Catalog finds generations of images. Dir, Farm and Channels must be set.
type Catalog struct {
	Dir      *imagebuild.Dir
	Farm     Farm
	Channels Channels

	// OnPromote is called after an image's channel was moved. nil is allowed.
	OnPromote func(image string)

	mu      sync.Mutex
	running chan struct{} // closed when the folder is read; nil: nobody reads it
	ended   time.Time     // when it was read; zero: never
	byPool  map[string]string
}

// Lookup returns the generation that a reference means now: NAME, NAME:CHANNEL or NAME@ID. The error
// wraps [io/fs.ErrNotExist] if there is none.
func (c *Catalog) Lookup(ref string) (imagebuild.Image, error) {
	name, channel, id := pools.SplitImage(ref)
	if id != "" {
		return c.Dir.Lookup(ref)
	}
	channel = cmp.Or(channel, pools.StableChannel)
	id = c.Channels.Of(name).Current(channel)
	if id == "" && channel == pools.StableChannel {
		return c.Dir.Lookup(name)
	}
	if id == "" {
		return imagebuild.Image{}, noChannelError{name, channel}
	}
	image, err := c.Dir.Lookup(name + "@sha256:" + id)
	if err != nil {
		err = fmt.Errorf("channel %q: %w; drover image promote and drover image rollback move the channel to another generation", channel, err)
	}
	return image, err
}

// noChannelError is the error for a channel that an image does not have.
type noChannelError struct{ image, channel string }

func (e noChannelError) Error() string {
	return fmt.Sprintf("image %q has no channel %q: drover image promote %s@ID --to %s makes it", e.image, e.channel, e.image, e.channel)
}

// Is reports whether it is an error for a thing that does not exist.
func (noChannelError) Is(target error) bool { return target == fs.ErrNotExist }

// List lists the generations of images, for the REST API. It leaves out the damaged ones:
// /readyz has those that a pool names.
func (c *Catalog) List() (all []pools.ImageInfo) {
	list, _ := c.Dir.List()
	decided := c.Channels.All()
	for i := range list {
		g := &list[i]
		all = append(all, pools.ImageInfo{
			Name: g.Name, ID: g.ID, Current: g.Current, Created: g.Created, Source: g.Source, Platform: g.Platform, KernelVersion: g.KernelVersion, Size: g.Size(),
		})
		describe(&all[i], decided[g.Name])
	}
	return all
}

// describe sets what channels say about a generation.
func describe(i *pools.ImageInfo, c pools.ImageChannels) {
	if id := c.Current(pools.StableChannel); id != "" {
		i.Current = id == i.ID
	}
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		if c.Current(name) == i.ID {
			i.Channels = append(i.Channels, name)
		}
		if back := c.Back(name); len(back) > 0 && back[0] == i.ID {
			i.Previous = append(i.Previous, name)
		}
	}
	if mark, bad := c.Bad[i.ID]; bad {
		i.Bad = &mark
	}
}

const (
	// fresh is the age up to which the generations of pools are not read again.
	fresh = time.Second
	// patience is the longest wait for the first reading of the folder, or for a newer one.
	patience = 200 * time.Millisecond
)

// Generations returns the digest of the generation that each pool boots now, by pool; a pool
// whose image is missing has none. It is up to a second old, older if the disk hangs.
func (c *Catalog) Generations() map[string]string {
	if running := c.read(); running != nil {
		limit := time.NewTimer(patience)
		defer limit.Stop()
		select {
		case <-running:
		case <-limit.C:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byPool)
}

// read begins to read the folder, unless it was just read. It returns a channel that is closed
// at the end; nil for what need not be waited for: a disk that hangs delays only those who ask
// first.
func (c *Catalog) read() (running chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil || !c.ended.IsZero() && time.Since(c.ended) < fresh {
		return nil
	}
	running = make(chan struct{})
	c.running = running
	go func() {
		byPool := map[string]string{}
		for _, p := range c.Farm.Farm().Config.Pools {
			if p.Image == "" {
				continue
			}
			if image, err := c.Lookup(p.Image); err == nil {
				byPool[p.Name] = image.ID
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.byPool, c.ended, c.running = byPool, time.Now(), nil
		close(running)
	}()
	return running
}
