package boots

import (
	"slices"
	"strings"
	"time"

	"drover/pools"
)

// Longest is the time after its first DISCOVER for which a machine counts as booting. A boot
// that waits for its image may take longer.
const Longest = time.Hour

// Recent reports whether a time is at most limit ago. A time in the future is not recent:
// it is from before the clock was set back, perhaps by years.
func Recent(since, now time.Time, limit time.Duration) bool {
	age := now.Sub(since)
	return -time.Minute < age && age <= limit
}

// Event is a report of a step that was reached, or of an error in it.
type Event struct {
	Step   Step    `json:"step"`
	Uptime float64 `json:"uptime"`           // seconds since the kernel started
	Detail string  `json:"detail,omitempty"` // "260 MB in 2.4 s"
	Error  string  `json:"error,omitempty"`  // why the step failed; the node tries again
}

// Record is the timeline of one boot of one machine.
type Record struct {
	ID      string    `json:"id"` // unique, sorts by time
	MAC     pools.MAC `json:"mac"`
	Node    string    `json:"node"`
	Pool    string    `json:"pool"`
	Cluster string    `json:"cluster,omitempty"`
	Image   string    `json:"image"`
	Unknown bool      `json:"unknown,omitempty"` // no node declares the machine
	Retired bool      `json:"retired,omitempty"` // the config has lost its node; only lists of a running server have it
	// Elsewhere is set when another server answered the machine last, as far as this one knows
	// ([Sharing]). The boot is not stuck here.
	Elsewhere bool `json:"elsewhere,omitempty"`

	Started time.Time  `json:"started"`
	Steps   []StepTime `json:"steps"`
	Error   string     `json:"error,omitempty"` // the last error reported; empty again once a later step is reached

	// Generation is the digest of the image that its script named; empty until there is one.
	Generation string `json:"generation,omitempty"`

	// Stuck is set by [MarkStuck] for a boot that makes no progress. It is not
	// stored.
	Stuck *Stuck `json:"stuck,omitempty"`
}

// StepTime is one item of a timeline: a step that was reached, or an error in it.
type StepTime struct {
	Step   Step      `json:"step"`
	Time   time.Time `json:"time"` // the server's clock
	Detail string    `json:"detail,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// NewestFirst compares two boots: the one that began later comes first.
func NewestFirst(a, b Record) int { return strings.Compare(b.ID, a.ID) }

// Reached returns a step of the timeline, and whether the boot has reached it.
func (r *Record) Reached(step Step) (at StepTime, ok bool) {
	for _, s := range r.Steps {
		if s.Step == step && s.Error == "" {
			return s, true
		}
	}
	return StepTime{}, false
}

// Furthest returns the last step that the boot has reached, in the order of a
// boot and not of time: a cluster can see a Node Ready before the node reports
// that it joined.
func (r *Record) Furthest() (last StepTime, ok bool) {
	if i, _ := r.furthest(); i >= 0 {
		return r.Steps[i], true
	}
	return StepTime{}, false
}

// furthest returns the index and the rank of the step of [Record.Furthest]; -1 without one. It
// begins at the end, where that step usually is: it is asked for all boots at once.
func (r *Record) furthest() (at, rank int) {
	at, rank = -1, -1
	for i := len(r.Steps) - 1; i >= 0 && rank < len(steps)-1; i-- {
		s := &r.Steps[i]
		if s.Error != "" {
			continue
		}
		if n := s.Step.Rank(); at < 0 || n >= rank {
			at, rank = i, n
		}
	}
	return at, rank
}

// Ended reports whether the boot is complete: with a cluster, when the Node is
// Ready; without one, when the machine is online.
func (r *Record) Ended() bool {
	end := StepReady
	if r.Cluster == "" {
		end = StepOnline
	}
	_, rank := r.furthest()
	return rank >= end.Rank()
}

// Took returns the time from the previous step that was reached to the given one;
// false for the first step.
func (r *Record) Took(step StepTime) (took time.Duration, ok bool) {
	for _, s := range r.Steps {
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

// pastOffer reports whether the machine has fetched a file.
func (r *Record) pastOffer() bool {
	return slices.ContainsFunc(r.Steps, func(s StepTime) bool { return s.Error == "" && s.Step.Rank() > StepOffer.Rank() })
}

// pastScript reports whether the machine has left the firmware phase.
func (r *Record) pastScript() bool {
	return slices.ContainsFunc(r.Steps, func(s StepTime) bool { return s.Step.Rank() > StepScript.Rank() })
}

// Loading reports whether the boot is in its firmware phase: from the first DISCOVER to
// the boot script.
func (r *Record) Loading(now time.Time) bool {
	return !r.pastScript() && Recent(r.Started, now, FirmwarePhase)
}

// lastTime returns the time of the newest item of the timeline, or the start of the
// boot.
func (r *Record) lastTime() time.Time {
	if n := len(r.Steps); n > 0 {
		return r.Steps[n-1].Time
	}
	return r.Started
}
