package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report has the figures of a run.
type Report struct {
	Drover        string         `json:"drover"` // the version
	Machines      int            `json:"machines"`
	Rounds        int            `json:"rounds,omitempty"` // in which all booted, each with the death of a server
	Racks         int            `json:"racks"`
	Undeclared    int            `json:"undeclared,omitempty"`
	Slow          int            `json:"slow,omitempty"`
	Mad           int            `json:"mad,omitempty"`
	Loss          float64        `json:"lossPercent,omitempty"`
	Delay         float64        `json:"delaySeconds,omitempty"`
	Root          int            `json:"rootMB"`
	Load          string         `json:"load"` // of the host, before
	Seconds       float64        `json:"seconds"`
	ServerSeconds float64        `json:"serverSeconds"` // of processor time
	ServerPeak    int64          `json:"serverPeak"`    // bytes of resident memory
	Bytes         int64          `json:"bytes"`         // received by TFTP and HTTP
	Queued        int64          `json:"queued"`        // waits in the queue for images
	Steps         []Step         `json:"steps"`
	Repeats       map[string]int `json:"repeats"` // what a machine did again: by step, "DHCP", "reset"; "mad": turns of mad machines
	Problems      []string       `json:"problems,omitempty"`
	Up            int            `json:"up"`               // machines that came through
	Failures      int            `json:"failures"`         // of machines, and other reasons to fail
	Failed        []string       `json:"failed,omitempty"` // the first of them
}

// Step has the times of one step of all machines, in seconds.
type Step struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// newStep returns the figures of sorted times, at least one.
func newStep(name string, sorted []time.Duration) Step {
	rank := func(percent int) float64 { // the nearest rank
		return sorted[max((len(sorted)*percent+99)/100, 1)-1].Seconds()
	}
	return Step{Name: name, Count: len(sorted), P50: rank(50), P99: rank(99), Max: rank(100)}
}

func (r *Report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "step\tcount\tp50\tp99\tmax\t")
	for _, s := range r.Steps {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t\n", s.Name, s.Count, seconds(s.P50), seconds(s.P99), seconds(s.Max))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d of %d boots up in %.1f s; %.1f MB received, %d waits in the queue\n", r.Up, r.Machines*max(r.Rounds, 1), r.Seconds, float64(r.Bytes)/1e6, r.Queued)
	if r.Rounds == 0 {
		fmt.Fprintf(w, "server: %.2f s of processor time (%.1f ms a machine), %.0f MB of memory at most; load average of the host before: %s\n",
			r.ServerSeconds, 1000*r.ServerSeconds/float64(r.Machines), float64(r.ServerPeak)/1e6, r.Load)
	}
	var again []string
	for _, what := range slices.Sorted(maps.Keys(r.Repeats)) {
		again = append(again, fmt.Sprintf("%s %d", what, r.Repeats[what]))
	}
	if len(again) > 0 {
		fmt.Fprintf(w, "repeated: %s\n", strings.Join(again, ", "))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "  healed: %s\n", p)
	}
	for _, f := range r.Failed {
		fmt.Fprintf(w, "FAILED: %s\n", f)
	}
	return nil
}

func seconds(s float64) string { return fmt.Sprintf("%.3f s", s) }

// failure returns an error if the run failed.
func (r *Report) failure() error {
	if r.Failures > 0 {
		return fmt.Errorf("%d failures, the first: %w", r.Failures, errors.New(r.Failed[0]))
	}
	return nil
}
