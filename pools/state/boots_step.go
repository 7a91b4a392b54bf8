package state

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"drover/pools"
)

// Bounds of one timeline.
const (
	maxSteps  = 64  // entries
	maxDetail = 200 // bytes of a detail
	maxError  = 500 // bytes of an error
)

// rank is the place of a step in the order of a boot.
func rank(s pools.Step) int { return slices.Index(pools.Steps, s) }

// reportable tells whether a node may report the step of itself; the others
// are seen by the server, or by the tenant's cluster.
func reportable(s pools.Step) bool {
	switch s {
	case pools.StepDiscover, pools.StepOffer, pools.StepLoader, pools.StepScript, pools.StepToken, pools.StepCSR, pools.StepReady:
		return false
	}
	return true
}

// pastScript tells whether the machine has left the firmware phase.
func pastScript(r *boot) bool {
	return slices.ContainsFunc(r.Record.Steps, func(s pools.BootStep) bool {
		return rank(s.Step) > rank(pools.StepScript)
	})
}

// lastTime is when the boot last got anywhere.
func (r *boot) lastTime() time.Time {
	if n := len(r.Record.Steps); n > 0 {
		return r.Record.Steps[n-1].Time
	}
	return r.Record.Started
}

// describe copies what the plan says of the machine.
func (r *boot) describe(p *pools.Plan) {
	r.Record.Node, r.Record.Pool = p.Node, p.Pool
	r.Record.Cluster, r.Record.Image = p.Cluster, p.Image
}

// reach notes an event in the timeline. It returns the entry and whether it
// is new: a step that was reached before adds nothing, nor does an error that
// repeats the last one.
func (r *boot) reach(e pools.Event, now time.Time) (pools.BootStep, bool) {
	step := pools.BootStep{
		Step: e.Step, Time: now.UTC(),
		Detail: tidy(e.Detail, maxDetail), Error: tidy(e.Error, maxError),
	}
	if step.Error != "" {
		repeated := r.Record.Error == step.Error && r.failing() == e.Step
		r.Record.Error = step.Error
		if repeated {
			return step, false
		}
		r.append(step)
		return step, true
	}
	if rank(e.Step) >= rank(r.failing()) {
		r.Record.Error = ""
	}
	if r.reached(e.Step) {
		return step, false
	}
	r.append(step)
	return step, true
}

func (r *boot) reached(s pools.Step) bool {
	return slices.ContainsFunc(r.Record.Steps, func(b pools.BootStep) bool { return b.Step == s && b.Error == "" })
}

// failing is the step of the last error.
func (r *boot) failing() pools.Step {
	for _, s := range slices.Backward(r.Record.Steps) {
		if s.Error != "" {
			return s.Step
		}
	}
	return ""
}

// append adds an entry to a copy of the steps: readers share the old ones. A
// full timeline gives up its oldest error, never a step that was reached.
func (r *boot) append(s pools.BootStep) {
	steps := append(slices.Clip(r.Record.Steps), s)
	if len(steps) > maxSteps {
		i := slices.IndexFunc(steps, func(s pools.BootStep) bool { return s.Error != "" })
		steps = slices.Delete(steps, i, i+1)
	}
	r.Record.Steps = steps
}

// tidy makes a text from the network fit to be shown: valid UTF-8, one line,
// no control characters, bounded.
func tidy(s string, limit int) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	s = strings.TrimSpace(s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
	}
	return s
}
