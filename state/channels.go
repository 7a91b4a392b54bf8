package state

import (
	"fmt"
	"maps"
	"sync"

	"drover/pools"
)

// Channels keeps what is decided about the generations of images, by the name of the image: one value
// for all channels of an image, so that each change of it is whole.
type Channels struct {
	changing sync.Mutex // held by a change until it is durable, so that the next one begins with it
	rows[pools.ImageChannels]
}

// Of returns what is decided about an image. The caller must not change it.
func (c *Channels) Of(image string) pools.ImageChannels { return c.get(image) }

// All returns what is decided, by the name of the image. The caller must not change the values.
func (c *Channels) All() map[string]pools.ImageChannels {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.values)
}

// Change replaces what is decided about an image by the result of edit, durably. After an error, of
// edit or of the disk, nothing has changed.
func (c *Channels) Change(image string, edit func(pools.ImageChannels) (pools.ImageChannels, error)) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	before := c.Of(image)
	after, err := edit(before)
	if err != nil {
		return err
	}
	c.mu.Lock()
	change, err := c.set(image, after)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	ticket, err := c.engine.Put(change)
	if err == nil {
		c.values[image] = after // under the lock: a snapshot has the change, or the log behind it
	}
	c.mu.Unlock()
	if err == nil {
		if err = c.engine.Wait(ticket); err != nil {
			c.restore(image, before)
		}
	}
	if err != nil {
		return fmt.Errorf("channels of the image %q: %w", image, err)
	}
	return nil
}

// restore reverts a change whose write failed, on the disk too, which may have it despite the error.
func (c *Channels) restore(image string, before pools.ImageChannels) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change := c.remove(image)
	if before.Channels == nil && before.Bad == nil {
		delete(c.values, image)
	} else {
		c.values[image] = before
		change, _ = c.set(image, before) // it was stored before
	}
	c.engine.Async(change)
}
