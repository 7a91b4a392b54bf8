package server

import (
	"slices"
	"time"

	"drover/httpboot/script"
	"drover/kube/objects"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
	"drover/server/catalog"
	"drover/state"
)

// channels implements [api.Channels].
type channels struct{ catalog *catalog.Catalog }

func (c channels) List() []pools.Channel { return c.catalog.ChannelList() }

func (c channels) Promote(r pools.PromoteRequest, by string, dry bool) (pools.Channel, string, error) {
	change, err := c.catalog.Promote(r, by, dry)
	return change.Channel, change.Before, err
}

func (c channels) Mark(r pools.MarkRequest, by string, dry bool) error {
	return c.catalog.Mark(r, by, dry)
}

func (c channels) Rollback(r pools.RollbackRequest, by string, dry bool) (pools.Channel, string, error) {
	change, err := c.catalog.Rollback(r, by, dry)
	return change.Channel, change.Before, err
}

// fallBacks implements [api.FallBacks].
type fallBacks struct{ table *state.FallBacks }

func (f fallBacks) Of(node string) pools.ImageTrial { return f.table.Of(node) }

func (f fallBacks) Clear(nodes ...string) {
	if len(nodes) > 0 { // none are all of them to the table
		f.table.Edit(func(_ string, t pools.ImageTrial) pools.ImageTrial { return t.Cleared() }, nodes...)
	}
}

// promoted has all nodes of an image boot it as their pools say: the operator has chosen its generation.
func (s *Server) promoted(image string) {
	s.Store.FallBacks.Edit(func(_ string, t pools.ImageTrial) pools.ImageTrial {
		if t.Image == image {
			return t.Cleared()
		}
		return t
	})
}

// passed notes that a boot has ended well, of a declared node: of invented machines there is no end.
func (s *Server) passed(b boots.Record) {
	if b.Ended() && !b.Unknown {
		s.Store.FallBacks.Edit(func(_ string, t pools.ImageTrial) pools.ImageTrial { return boots.Passed(t, b) }, b.Node)
	}
}

// givenUp notes that a machine has begun another boot in place of b, and reports a node that falls back.
func (s *Server) givenUp(b boots.Record) {
	if b.Unknown || !b.Failed() {
		return
	}
	var after pools.ImageTrial
	fell := false
	s.Store.FallBacks.Edit(func(_ string, t pools.ImageTrial) pools.ImageTrial {
		find := func(id string) (boots.Record, bool) { return s.Store.Boots.Find(b.MAC, id) }
		after = boots.GivenUp(t, b, find, time.Now())
		fell = t.FellBack.IsZero() && !after.FellBack.IsZero()
		return after
	}, b.Node)
	if !fell {
		return
	}
	failed, good := pools.ShortImage(after.Image, after.Failed), pools.ShortImage(after.Image, after.Good)
	s.log.Warn("a node falls back to the generation of its image that was ready on it last", "node", b.Node, "failed", failed, "boots", good,
		"clear", "drover image promote or rollback, or drover node next-boot "+b.Node)
	if s.objects != nil {
		last, _ := b.Furthest()
		s.objects.watcher.Warn(b.Node, b.ID, objects.FellBack, "two boots of "+failed+" failed, the last one after step "+string(last.Step)+": it boots "+good)
	}
}

// fallBack returns the generation that a machine boots in place of one: another one if that has failed
// on it, and the other is there and not marked bad.
func (s *Server) fallBack(images *catalog.Catalog) func(p *resolve.Plan, image script.Image) script.Image {
	return func(p *resolve.Plan, image script.Image) script.Image {
		t := s.Store.FallBacks.Of(p.Node)
		if p.NextBoot != "" || t.FellBack.IsZero() || t.Image != image.Name || t.Failed != image.Generation || images.IsBad(t.Image, t.Good) {
			return image
		}
		if slices.ContainsFunc(t.Boots, func(id string) bool { // it was given up too early
			b, ok := s.Store.Boots.Find(p.MAC, id)
			return ok && !b.Failed()
		}) {
			return image
		}
		good, err := imageDir{images}.Image(t.Image + "@sha256:" + t.Good)
		if err != nil {
			s.log.Warn("a node has no generation to fall back to", "node", p.Node, "err", err)
			return image
		}
		return good
	}
}

// countFallBacks returns the number of nodes that boot another generation than their pool says.
func (s *Server) countFallBacks() (n int) {
	for _, t := range s.Store.FallBacks.All() {
		if !t.FellBack.IsZero() {
			n++
		}
	}
	return n
}
