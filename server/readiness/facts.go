package readiness

import (
	"time"

	"drover/imagebuild"
)

// Facts are facts about files, for metrics.
type Facts struct {
	Generations map[string]Generation // the image that each pool boots now, by pool
	Expiries    map[string]time.Time  // when credentials for clusters end, by cluster
	Renewals    map[string]error      // those that drover renews, with the error of the last try
}

// Images finds the generation that a reference means now. The error wraps [io/fs.ErrNotExist]
// if there is none.
type Images interface {
	Lookup(ref string) (imagebuild.Image, error)
}

// Generation is a generation of an image.
type Generation struct {
	Image string // its name
	ID    string // the SHA-256 of its manifest
}

// Facts returns the newest facts. It does not wait for disks that hang.
func (c *Checks) Facts() Facts {
	facts, _ := c.lastFacts.get(c.facts, filesWait)
	return facts
}

func (c *Checks) facts() Facts {
	f := Facts{Generations: map[string]Generation{}}
	for _, p := range c.Live.Farm().Config.Pools {
		if p.Image == "" {
			continue
		}
		if image, err := c.Images.Lookup(p.Image); err == nil { // else it is a problem of /readyz
			f.Generations[p.Name] = Generation{image.Name, image.ID}
		}
	}
	if c.Expiries != nil {
		f.Expiries = c.Expiries()
	}
	if c.Renewals != nil {
		f.Renewals = c.Renewals()
	}
	return f
}
