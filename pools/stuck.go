package pools

import (
	"slices"
	"time"
)

// Stuck is a boot that makes no progress: the step after the last one takes much
// longer than it usually does.
type Stuck struct {
	After Step      `json:"after"`           // the last step that it reached
	Since time.Time `json:"since"`           // when it did
	Usual Duration  `json:"usual,omitempty"` // what the way to the next step usually takes; 0 when there were too few boots to tell
	Limit Duration  `json:"limit"`           // what it may take
}

// How long the way from one step to the next may take.
const (
	stuckLeast   = time.Minute     // however fast others were
	stuckUnknown = 3 * time.Minute // as long as there is nothing to compare with
	stuckQueued  = 30 * time.Minute
	stuckTimes   = 3 // times what is usual

	usualOf   = 5  // ways it takes to call one usual
	usualMost = 50 // the newest that count
)

// Furthest returns the last step that a boot has reached, in the order of a
// boot: a cluster can see a node Ready before the node can say that it joined.
func (b *BootRecord) Furthest() (last BootStep, ok bool) {
	for _, s := range b.Steps {
		if s.Error == "" && (!ok || slices.Index(Steps, s.Step) > slices.Index(Steps, last.Step)) {
			last, ok = s, true
		}
	}
	return last, ok
}

// Ended tells whether a boot has come to its end: Ready in its cluster, or for a
// machine without one that its services run.
func (b *BootRecord) Ended() bool {
	last, ok := b.Furthest()
	if b.Cluster == "" {
		return ok && slices.Index(Steps, last.Step) >= slices.Index(Steps, StepOnline)
	}
	return ok && last.Step == StepReady
}

// Took returns how long one of the boot's steps took, which is since the one
// before; false for the first.
func (b *BootRecord) Took(step BootStep) (took time.Duration, ok bool) {
	for _, s := range b.Steps {
		if s.Error != "" {
			continue
		}
		if s.Step == step.Step {
			return max(took, 0), ok
		}
		took, ok = step.Time.Sub(s.Time), true
	}
	return 0, false
}

// way is from one step of a boot to whichever comes next, in one pool: machines
// of a pool are alike, and boot the same image.
type way struct {
	pool string
	from Step
}

// MarkStuck returns boots, the newest first, with Stuck set for those that are:
// of each node only the newest can be, whichever of its network cards booted. The
// boots themselves are not changed.
func MarkStuck(boots []BootRecord, now time.Time) []BootRecord {
	ways := usualWays(boots)
	out := slices.Clone(boots)
	seen := make(map[string]bool, len(boots))
	for i := range out {
		b := &out[i]
		if seen[b.Node] {
			continue
		}
		seen[b.Node] = true
		last, ok := b.Furthest()
		if !ok || b.Ended() {
			continue
		}
		usual := median(ways[way{b.Pool, last.Step}])
		limit := stuckUnknown
		if usual > 0 {
			limit = max(stuckTimes*usual, stuckLeast)
		}
		if last.Step == StepQueued {
			limit = max(limit, stuckQueued) // it waits for its turn, which takes as long as others need
		}
		if now.Sub(last.Time) > limit {
			b.Stuck = &Stuck{After: last.Step, Since: last.Time, Usual: Duration(usual), Limit: Duration(limit)}
		}
	}
	return out
}

// usualWays collects how long each way took in the newest boots.
func usualWays(boots []BootRecord) map[way][]time.Duration {
	ways := map[way][]time.Duration{}
	for _, b := range boots {
		var before BootStep
		for _, s := range b.Steps {
			if s.Error != "" {
				continue
			}
			if w := (way{b.Pool, before.Step}); before.Step != "" && len(ways[w]) < usualMost {
				ways[w] = append(ways[w], s.Time.Sub(before.Time))
			}
			before = s
		}
	}
	return ways
}

// median returns the middle of some durations, at least a millisecond, or 0 if
// they are too few.
func median(d []time.Duration) time.Duration {
	if len(d) < usualOf {
		return 0
	}
	slices.Sort(d)
	return max(d[len(d)/2], time.Millisecond)
}
