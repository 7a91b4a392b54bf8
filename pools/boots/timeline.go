package boots

import (
	"slices"
	"time"

	"drover/internal/printable"
)

// Bounds of one timeline.
const (
	maxSteps  = 64  // steps and errors
	maxDetail = 200 // bytes of a detail
	maxError  = 500 // bytes of an error
)

// reach adds an event to the timeline. It returns the item and reports whether it is
// new: a step that was reached before adds nothing, nor does an error that repeats
// the last one. An erase of disks reports how far it is.
func (r *Record) reach(e Event, now time.Time) (StepTime, bool) {
	step := StepTime{
		Step: e.Step, Time: now.UTC(),
		Detail: printable.Line(e.Detail, maxDetail), Error: printable.Line(e.Error, maxError),
	}
	if step.Error != "" {
		repeated := r.Error == step.Error && r.failing() == e.Step
		r.Error = step.Error
		if repeated {
			return step, false
		}
		r.append(step)
		return step, true
	}
	if e.Step.Rank() >= r.failing().Rank() {
		r.Error = ""
	}
	if _, again := r.Reached(e.Step); again {
		return step, e.Step == StepWipe && r.replace(step)
	}
	r.append(step)
	return step, true
}

// replace puts a new report of a step that goes on for long in the place of the one before, unless it
// says the same. It reports whether it did.
func (r *Record) replace(s StepTime) bool {
	i := slices.IndexFunc(r.Steps, func(o StepTime) bool { return o.Step == s.Step && o.Error == "" })
	if r.Steps[i].Detail == s.Detail {
		return false
	}
	r.Steps = slices.Clone(r.Steps) // readers share the old slice
	r.Steps[i] = s
	return true
}

// failing returns the step of the last error.
func (r *Record) failing() Step {
	for _, s := range slices.Backward(r.Steps) {
		if s.Error != "" {
			return s.Step
		}
	}
	return ""
}

// append adds an item to a copy of the steps, since readers share the old slice. A
// full timeline drops its oldest error, never a step that was reached.
func (r *Record) append(s StepTime) {
	steps := append(slices.Clip(r.Steps), s)
	if len(steps) > maxSteps {
		i := slices.IndexFunc(steps, func(s StepTime) bool { return s.Error != "" })
		steps = slices.Delete(steps, i, i+1)
	}
	r.Steps = steps
}
