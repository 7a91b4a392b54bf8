package cluster

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// Large lists are read one after another, so that the answers of several hostile API
// servers do not add up. The sizes are in bytes of memory, as a scanner estimates them.
const (
	// smallList is the size up to which a list waits for no other.
	smallList = 2 << 20
	// usualPage is the size up to which a page waits for lists of its own cluster alone.
	// Hardly any page of 100 objects is larger.
	usualPage = 12 << 20
)

// Room is the room for large lists, which all clusters of a server share. Make it with
// [NewRoom].
type Room struct {
	huge     *semaphore.Weighted // pages above usualPage
	suspects *semaphore.Weighted // lists above smallList of clusters with a refused answer
}

// NewRoom returns a room for two large lists at a time: one that is larger than usual, and
// one of a cluster of which an answer was refused within the last ten minutes. Beside
// these, each other cluster has room for one list of the usual size.
func NewRoom() *Room {
	return &Room{huge: semaphore.NewWeighted(1), suspects: semaphore.NewWeighted(1)}
}

// reading is a list that is being read, with its part of the room.
type reading struct {
	large, huge *semaphore.Weighted // what it holds
	whole       bool                // it was read to its end
}

// errNoRoom is the error of a list that waited too long for others.
var errNoRoom = errors.New("too many other large lists are being read")

// grow waits until a list of this size may be read on.
func (r *reading) grow(ctx context.Context, c *Cluster, size int) error {
	if size > smallList && r.large == nil {
		s := c.large
		if c.lastRefused() != nil {
			s = c.Room.suspects
		}
		if err := acquire(ctx, s); err != nil {
			return err
		}
		r.large = s
	}
	if size > usualPage && r.huge == nil && r.large != c.Room.suspects {
		if err := acquire(ctx, c.Room.huge); err != nil {
			return err
		}
		r.huge = c.Room.huge
	}
	return nil
}

// acquire waits for s as long as a request may take.
func acquire(ctx context.Context, s *semaphore.Weighted) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.Acquire(limited, 1); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return nil
}

// end gives the room back. It reports whether the list kept others waiting without being
// read to its end.
func (r *reading) end() (held bool) {
	held = r.huge != nil && !r.whole
	for _, s := range []*semaphore.Weighted{r.large, r.huge} {
		if s != nil {
			s.Release(1)
		}
	}
	r.large, r.huge = nil, nil
	return held
}
