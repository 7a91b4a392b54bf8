package pools

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// StableChannel is the channel that the name of an image alone means.
const StableChannel = "stable"

// Bounds of what is kept of an image.
const (
	MaxChannels = 32  // channels of an image
	MaxHistory  = 10  // promotions of a channel, the current one included
	MaxMarks    = 100 // bad generations of an image
	MaxWhy      = 300 // bytes of a reason
)

// The errors of requests about channels. Test with errors.Is.
var (
	ErrNoImage  = errors.New("no such generation of an image")
	ErrBadImage = errors.New("the generation is not to be promoted")
)

// ChannelName reports whether a name is valid for a channel.
func ChannelName(name string) bool {
	return regexp.MustCompile(`^[a-z][a-z0-9._-]{0,31}$`).MatchString(name)
}

// SplitImage returns the parts of a reference to an image: NAME, NAME:CHANNEL or NAME@ID. Only one
// of channel and id is set; id may be short, and is without its sha256:.
func SplitImage(ref string) (name, channel, id string) {
	name, id, pinned := strings.Cut(ref, "@")
	if !pinned {
		name, channel, _ = strings.Cut(ref, ":")
	}
	return name, channel, strings.TrimPrefix(id, "sha256:")
}

// Promotion is a generation that became the current one of a channel.
type Promotion struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	By   string    `json:"by,omitempty"`   // the client of the API
	Why  string    `json:"why,omitempty"`  // as the client said
	Back bool      `json:"back,omitempty"` // by a roll-back
}

// ImageMark says that a generation of an image is bad.
type ImageMark struct {
	Time time.Time `json:"time"`
	By   string    `json:"by,omitempty"`
	Why  string    `json:"why,omitempty"`
}

// ImageChannels is what is decided about the generations of an image.
type ImageChannels struct {
	Channels map[string][]Promotion `json:"channels,omitempty"` // by name, the newest first: it is the current one
	Bad      map[string]ImageMark   `json:"bad,omitempty"`      // by ID
}

// Current returns the ID of the generation that a channel has; empty for a channel that is not there.
func (c ImageChannels) Current(channel string) string {
	if all := c.Channels[channel]; len(all) > 0 {
		return all[0].ID
	}
	return ""
}

// Back returns the IDs of the generations to which a roll-back of a channel can lead, the nearest first:
// those that were current before the current one. A roll-back takes a promotion back, so that the next
// one leads further back, and never to what the one before has left.
func (c ImageChannels) Back(channel string) (ids []string) {
	for _, p := range slices.Backward(c.Channels[channel]) {
		if i := slices.Index(ids, p.ID); p.Back && i >= 0 {
			ids = ids[i:]
			continue
		}
		ids = slices.Insert(ids, 0, p.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(ids[1:]), func(id string) bool {
		_, bad := c.Bad[id]
		return bad || id == ids[0]
	})
}

// With returns a copy in which a channel has one more promotion.
func (c ImageChannels) With(channel string, p Promotion) ImageChannels {
	c = c.clone()
	all := slices.Insert(slices.Clone(c.Channels[channel]), 0, p)
	c.Channels[channel] = all[:min(len(all), MaxHistory)]
	return c
}

// Marked returns a copy in which a generation is bad; with a nil mark it is not.
func (c ImageChannels) Marked(id string, mark *ImageMark) ImageChannels {
	c = c.clone()
	if delete(c.Bad, id); mark != nil {
		c.Bad[id] = *mark
	}
	return c
}

func (c ImageChannels) clone() ImageChannels {
	out := ImageChannels{map[string][]Promotion{}, map[string]ImageMark{}}
	maps.Copy(out.Channels, c.Channels) // the slices are never changed in place
	maps.Copy(out.Bad, c.Bad)
	return out
}

// Channel is a channel of an image in an answer of the REST API.
type Channel struct {
	Image    string      `json:"image"`
	Name     string      `json:"name"`
	Current  string      `json:"current"`            // the ID of its generation
	Previous string      `json:"previous,omitempty"` // the one that a roll-back leads to; empty: none
	History  []Promotion `json:"history"`            // the newest first
}

// PromoteRequest asks for a generation to become the current one of a channel.
type PromoteRequest struct {
	Image string `json:"image"`           // NAME@ID; NAME:CHANNEL is the generation of that channel, NAME that of the last build
	To    string `json:"to,omitempty"`    // the channel; default stable
	Why   string `json:"why,omitempty"`   // for the history
	Force bool   `json:"force,omitempty"` // also a generation that is marked bad
}

// RollbackRequest asks for a channel to go back to the generation that it had before.
type RollbackRequest struct {
	Image string `json:"image"` // NAME or NAME:CHANNEL
	Why   string `json:"why,omitempty"`
}

// MarkRequest asks for a generation to be marked bad, or no longer.
type MarkRequest struct {
	Image string `json:"image"` // NAME@ID
	Good  bool   `json:"good,omitempty"`
	Why   string `json:"why,omitempty"`
}
