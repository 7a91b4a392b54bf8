package boots

import (
	"slices"
	"time"

	"drover/pools"
)

// Stuck describes a boot that makes no progress: its next step takes much longer
// than it usually does.
type Stuck struct {
	After Step           `json:"after"`           // the last step that was reached
	Since time.Time      `json:"since"`           // when
	Usual pools.Duration `json:"usual,omitempty"` // the usual time to the next step; 0 when too few boots are known
	Limit pools.Duration `json:"limit"`           // the longest time that is not stuck
}

// Limits of the time from one step to the next.
const (
	stuckLeast   = time.Minute     // however fast others were
	stuckUnknown = 3 * time.Minute // as long as there is nothing to compare with
	stuckQueued  = 30 * time.Minute
	stuckTimes   = 3 // times the usual

	usualOf   = 5  // boots that make a time usual
	usualMost = 50 // the newest boots that count
)

// transition is the way from one step to the next in one pool: machines of a
// pool are alike, and boot the same image.
type transition struct {
	pool string
	from Step
}

// MarkStuck returns records, which are sorted newest first, with Stuck set for
// the boots that are. Only the newest boot of a node can be stuck, whichever of
// its network cards booted. The argument is not changed.
func MarkStuck(records []Record, now time.Time) []Record {
	times := transitionTimes(records)
	out := slices.Clone(records)
	seen := make(map[string]bool, len(records))
	for i := range out {
		r := &out[i]
		if seen[r.Node] {
			continue
		}
		seen[r.Node] = true
		last, ok := r.Furthest()
		if !ok || r.Ended() {
			continue
		}
		usual := median(times[transition{r.Pool, last.Step}])
		limit := stuckUnknown
		if usual > 0 {
			limit = max(stuckTimes*usual, stuckLeast)
		}
		if last.Step == StepQueued {
			limit = max(limit, stuckQueued) // its turn comes when others are done
		}
		if now.Sub(last.Time) > limit {
			r.Stuck = &Stuck{After: last.Step, Since: last.Time, Usual: pools.Duration(usual), Limit: pools.Duration(limit)}
		}
	}
	return out
}

// transitionTimes collects how long each transition took in the newest boots.
func transitionTimes(records []Record) map[transition][]time.Duration {
	times := map[transition][]time.Duration{}
	for _, r := range records {
		var before StepTime
		for _, s := range r.Steps {
			if s.Error != "" {
				continue
			}
			if t := (transition{r.Pool, before.Step}); before.Step != "" && len(times[t]) < usualMost {
				times[t] = append(times[t], s.Time.Sub(before.Time))
			}
			before = s
		}
	}
	return times
}

// median returns the middle of some durations, at least a millisecond; 0 when
// they are too few.
func median(d []time.Duration) time.Duration {
	if len(d) < usualOf {
		return 0
	}
	slices.Sort(d)
	return max(d[len(d)/2], time.Millisecond)
}
