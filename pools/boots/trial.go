package boots

import (
	"slices"
	"time"

	"drover/pools"
)

// Failed reports whether the image is the cause if the machine gives up on this boot: it was sent the
// image, and has got no further than to a step behind which everything is in the image. What a
// machine waits for at other steps is elsewhere: at network and queued its turn for the image, at
// image the server and the kubelet of the boot before, at online and behind it the cluster.
func (r *Record) Failed() bool {
	last, ok := r.Furthest()
	return ok && r.Generation != "" && !r.Ended() && slices.Contains([]Step{StepKernel, StepInitrd, StepInit, StepConfig, StepSwitch}, last.Step)
}

// Passed returns a trial after a boot has ended well.
func Passed(t pools.ImageTrial, r Record) pools.ImageTrial {
	name := pools.ImageName(r.Image)
	switch {
	case r.Generation == "" || !r.Ended():
		return t
	case t.Image == name && t.Good == r.Generation && t.Failed != r.Generation:
		return t // also in place of a generation that has failed
	}
	return pools.ImageTrial{Image: name, Good: r.Generation}
}

// GivenUp returns a trial after a machine has begun another boot in place of r. earlier returns a boot
// by its ID; false if it is forgotten. Of one boot nothing follows, and nothing of a generation that was
// Ready on the node before: then there is another cause.
func GivenUp(t pools.ImageTrial, r Record, earlier func(id string) (Record, bool), now time.Time) pools.ImageTrial {
	if !r.Failed() || t.Good == "" || t.Image != pools.ImageName(r.Image) || t.Good == r.Generation || slices.Contains(t.Boots, r.ID) {
		return t
	}
	if t.Failed != r.Generation {
		t = t.Cleared()
		t.Failed = r.Generation
	}
	// A boot that was given up too early, since anyone can send a DISCOVER in the name of a machine, may
	// have got further since.
	still := slices.DeleteFunc(slices.Clone(t.Boots), func(id string) bool {
		b, ok := earlier(id)
		return ok && !b.Failed()
	})
	still = append(still, r.ID)
	t.Boots = still[max(0, len(still)-pools.FallBackAfter):]
	if len(t.Boots) == pools.FallBackAfter && t.FellBack.IsZero() {
		t.FellBack = now.UTC()
	}
	return t
}
