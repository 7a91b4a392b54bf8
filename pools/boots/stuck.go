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
	Since time.Time      `json:"since"`           // when that step was reached
	Usual pools.Duration `json:"usual,omitempty"` // the usual time to the next step; 0 if too few boots are known
	Limit pools.Duration `json:"limit"`           // the longest time that is not stuck
}

// Limits of the time from one step to the next.
const (
	minLimit     = time.Minute      // however fast other boots were
	defaultLimit = 3 * time.Minute  // with too few boots to compare with
	queuedLimit  = 30 * time.Minute // at least, after the step queued
	limitFactor  = 3                // times the usual time

	minSamples = 5  // transitions that a usual time needs
	maxSamples = 50 // the newest transitions count
)

// transition identifies the step from which boots of one pool go on to the next.
// Machines of a pool are alike and boot the same image, so their times compare.
type transition struct {
	pool string
	from Step
}

// MarkStuck returns a copy of records, which are sorted newest first, in which Stuck
// is set for the boots that are stuck. Only the newest boot of a node can be stuck,
// whichever of its network cards booted.
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
		limit := defaultLimit
		if usual > 0 {
			limit = max(limitFactor*usual, minLimit)
		}
		if last.Step == StepQueued {
			limit = max(limit, queuedLimit) // its turn comes when others are done
		}
		if now.Sub(last.Time) > limit {
			r.Stuck = &Stuck{After: last.Step, Since: last.Time, Usual: pools.Duration(usual), Limit: pools.Duration(limit)}
		}
	}
	return out
}

// transitionTimes returns the durations of each transition in the newest boots.
func transitionTimes(records []Record) map[transition][]time.Duration {
	times := map[transition][]time.Duration{}
	for _, r := range records {
		var before StepTime
		for _, s := range r.Steps {
			if s.Error != "" {
				continue
			}
			if t := (transition{r.Pool, before.Step}); before.Step != "" && len(times[t]) < maxSamples {
				times[t] = append(times[t], s.Time.Sub(before.Time))
			}
			before = s
		}
	}
	return times
}

// median returns the median of durations, at least a millisecond; 0 for fewer than
// minSamples.
func median(d []time.Duration) time.Duration {
	if len(d) < minSamples {
		return 0
	}
	slices.Sort(d)
	return max(d[len(d)/2], time.Millisecond)
}
