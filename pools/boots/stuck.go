package boots

import (
	"slices"
	"time"

	"drover/internal/wait"
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

// MarkStuck sets Stuck in the boots that are stuck, and returns records, which are sorted
// newest first. Only the newest boot of a node can be stuck, whichever of its network cards
// booted.
func MarkStuck(records []Record, now time.Time) []Record {
	seen := make(map[string]bool, len(records))
	var open []*Record
	times := map[string]transitions{}
	var pace wait.Pace
	for i := range records {
		if i%perStep == 0 {
			pace.Step()
		}
		r := &records[i]
		if seen[r.Node] || r.Retired {
			continue
		}
		seen[r.Node] = true
		last, ok := r.Furthest()
		if !ok || r.Ended() || r.Elsewhere || last.Step == StepJoined && !r.hasToken() {
			continue
		}
		open = append(open, r)
		if times[r.Pool] == nil {
			times[r.Pool] = transitions{}
		}
		times[r.Pool][last.Step] = nil
	}
	measure(times, records, &pace)
	for _, r := range open {
		last, _ := r.Furthest()
		usual := median(times[r.Pool][last.Step])
		limit := defaultLimit
		if usual > 0 {
			limit = max(limitFactor*usual, minLimit)
		}
		if last.Step == StepQueued || last.Step == StepWipe {
			limit = max(limit, queuedLimit) // its turn comes when others are done; large disks take long
		}
		if now.Sub(last.Time) > limit {
			r.Stuck = &Stuck{After: last.Step, Since: last.Time, Usual: pools.Duration(usual), Limit: pools.Duration(limit)}
		}
	}
	return records
}

// hasToken reports whether the node got its join token here. If not, the server that gave it
// follows the Node until it is Ready.
func (r *Record) hasToken() bool {
	_, ok := r.Reached(StepToken)
	return ok
}

// transitions are the times from a step to the next one, in the boots of one pool. Machines of
// a pool are alike and boot the same image, so their times compare.
type transitions map[Step][]time.Duration

// measure sets the times in the newest boots of the transitions that are in times, by pool.
func measure(times map[string]transitions, records []Record, pace *wait.Pace) {
	lacking := 0 // transitions with fewer samples than count
	for _, of := range times {
		lacking += len(of)
	}
	for i := 0; i < len(records) && lacking > 0; i++ {
		if i%perStep == 0 {
			pace.Step()
		}
		r := &records[i]
		of := times[r.Pool]
		if of == nil {
			continue
		}
		var before *StepTime
		for j := range r.Steps {
			s := &r.Steps[j]
			if s.Error != "" {
				continue
			}
			if before != nil {
				if d, asked := of[before.Step]; asked && len(d) < maxSamples {
					if of[before.Step] = append(d, s.Time.Sub(before.Time)); len(d)+1 == maxSamples {
						lacking--
					}
				}
			}
			before = s
		}
	}
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
