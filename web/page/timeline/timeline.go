// Package timeline draws boots: each step as a bar, from the step before it.
//
// The package does not know which machine a boot is of, nor how a drawing looks.
package timeline

import (
	"slices"
	"time"

	"drover/internal/printable"
	"drover/pools/boots"
	"drover/web/page/table"
	"drover/web/page/text"
)

// Width is the width of a drawing of bars, in units of its own.
const Width = 1000

// Bar is a part of a drawing: an SVG rectangle, since the page has no inline styles.
type Bar struct {
	X, Width int
	Class    string
}

// Waterfall is a boot, step by step.
type Waterfall struct {
	ID      string
	Started string
	Took    string
	Result  string
	State   string
	Image   string
	MAC     string
	Current bool // it is the newest
	Steps   []Step
}

// Step is a step of a boot, or an error in it.
type Step struct {
	Step    string
	Meaning string
	By      string // reporter
	Bar     Bar
	At      string // since the boot began
	Took    string // since the step before
	Usual   string // in the earlier boots
	Detail  string
	Error   string
}

// maxText bounds a text of a boot, in bytes.
const maxText = 300

// failing is the class of an error.
const failing = "failing"

// maxTimeline bounds the lines of a waterfall.
const maxTimeline = 64

// New returns the timeline of a boot. The bar of a step begins where the step
// before it was reached. A boot in progress ends now.
func New(b *boots.Record, earlier []boots.Record, now time.Time, how string) Waterfall {
	w := Waterfall{ID: b.ID, Started: text.Clock(b.Started), State: how, Image: b.Image, MAC: b.MAC.String()}
	end := b.Started
	for _, s := range b.Steps {
		end = later(end, s.Time)
	}
	w.Took = text.Seconds(end.Sub(b.Started))
	if !b.Ended() && now.After(end) && how != "" {
		end = now
	}
	whole := max(end.Sub(b.Started), time.Millisecond)
	at := func(t time.Time) int {
		return int(min(max(t.Sub(b.Started), 0), whole) * Width / whole)
	}
	before := b.Started
	for _, s := range b.Steps[max(0, len(b.Steps)-maxTimeline):] {
		line := Step{
			Step: string(s.Step), By: string(s.Step.Reporter()), At: text.Seconds(s.Time.Sub(b.Started)),
			Detail: printable.Line(s.Detail, maxText), Error: printable.Line(s.Error, 2*maxText),
		}
		line.Bar = Bar{X: min(at(before), Width-2), Width: max(2, at(s.Time)-at(before)), Class: line.By}
		if s.Error != "" {
			line.Bar = Bar{X: min(at(s.Time), Width-4), Width: 4, Class: failing}
		} else {
			if took, ok := b.Took(s); ok {
				line.Took = text.Seconds(took)
			}
			line.Usual = usual(s, earlier)
			before = later(before, s.Time)
		}
		w.Steps = append(w.Steps, line)
	}
	if !b.Ended() && now.After(before) && how != "" && len(w.Steps) > 0 {
		w.Steps = append(w.Steps, Step{
			Step: "…", Bar: Bar{X: min(at(before), Width-2), Width: max(2, Width-at(before)), Class: "open"}, Took: text.Seconds(now.Sub(before)), Detail: "in progress",
		})
	}
	for i := range w.Steps {
		for _, info := range boots.Steps() {
			if string(info.Step) == w.Steps[i].Step {
				w.Steps[i].Meaning = info.Meaning
			}
		}
	}
	return w
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// usual returns the median time that earlier boots took for a step, as text; "" with fewer
// than two.
func usual(s boots.StepTime, earlier []boots.Record) string {
	var all []time.Duration
	for i := range earlier {
		if reached, ok := earlier[i].Reached(s.Step); ok {
			if took, ok := earlier[i].Took(reached); ok {
				all = append(all, took)
			}
		}
	}
	if len(all) < 2 {
		return ""
	}
	slices.Sort(all)
	return text.Seconds(all[len(all)/2])
}

// Earlier is a line of the boots of a machine.
type Earlier struct {
	URL, Started, Took, Result, Image string
	Class                             string
	Bars                              []Bar
	Shown                             bool // it is the one above
}

// Boots returns the boots of a machine, the newest first, each with its steps drawn
// on one scale.
func Boots(path, shown string, all []boots.Record) (out []Earlier) {
	longest := time.Millisecond
	for i := range all {
		if last, ok := all[i].Furthest(); ok {
			longest = max(longest, last.Time.Sub(all[i].Started))
		}
	}
	for i := range all {
		b := &all[i]
		line := Earlier{URL: table.To(path, "boot", b.ID), Started: text.Clock(b.Started), Image: b.Image, Shown: b.ID == shown, Class: "ready", Result: "complete"}
		if i == 0 {
			line.URL = path
		}
		last, ok := b.Furthest()
		if ok {
			line.Took = text.Seconds(last.Time.Sub(b.Started))
		}
		if !b.Ended() {
			line.Class, line.Result = "stuck", "ended after "+string(last.Step)
			if i == 0 {
				line.Class, line.Result = "booting", "after "+string(last.Step)
			}
			if b.Error != "" {
				line.Class, line.Result = failing, printable.Line(b.Error, 120)
			}
		}
		before := b.Started
		for _, s := range b.Steps {
			if s.Error != "" || s.Time.Before(before) {
				continue
			}
			x := int(before.Sub(b.Started) * Width / longest)
			to := int(min(s.Time.Sub(b.Started), longest) * Width / longest)
			if to > x {
				line.Bars = append(line.Bars, Bar{X: x, Width: to - x, Class: string(s.Step.Reporter())})
			}
			before = s.Time
		}
		out = append(out, line)
	}
	return out
}
