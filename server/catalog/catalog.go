// Package catalog says which generation of an image a reference means now: it reads the
// folder of images. [Catalog.Lookup] is asked for each boot; [Catalog.Generations] is for
// lists, which must not wait for a disk that hangs.
//
// The package does not know which machine boots.
package catalog

import (
	"maps"
	"sync"
	"time"

	"drover/imagebuild"
	"drover/pools"
	"drover/pools/resolve"
)

// Farm returns the farm in force.
type Farm interface{ Farm() *resolve.Farm }

// Catalog finds generations of images. Dir and Farm must be set.
type Catalog struct {
	Dir  *imagebuild.Dir
	Farm Farm

	mu      sync.Mutex
	running chan struct{} // closed when the folder is read; nil: nobody reads it
	ended   time.Time     // when it was read; zero: never
	byPool  map[string]string
}

// Lookup returns the generation that a reference means now. The error wraps
// [io/fs.ErrNotExist] if there is none.
func (c *Catalog) Lookup(ref string) (imagebuild.Image, error) { return c.Dir.Lookup(ref) }

// List lists the generations of images, for the REST API. It leaves out the damaged ones:
// /readyz has those that a pool names.
func (c *Catalog) List() (all []pools.ImageInfo) {
	list, _ := c.Dir.List()
	for i := range list {
		g := &list[i]
		all = append(all, pools.ImageInfo{
			Name: g.Name, ID: g.ID, Current: g.Current, Created: g.Created, Source: g.Source, Platform: g.Platform, KernelVersion: g.KernelVersion, Size: g.Size(),
		})
	}
	return all
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
