// Package watch powers machines on and follows them for the demonstrations: each step of each
// boot is printed as drover tells it, until the machine is what its plan says.
//
//	w := &watch.Watch{Log: watch.NewLog(os.Stdout), Rack: rack, Drover: drover, Cluster: ...}
//	err := w.PowerOn(m)                   // a [Machine] with its plan
//	err = w.Ready(ctx)                    // all are Ready in their clusters, and run a pod
//	err = w.Move(ctx, m, plan)            // to another cluster, when the farm says so
//	err = w.Report(ctx, "a", "b")         // the clusters, and a table of all boots
//
// The package knows neither how a farm is declared nor who runs the clusters.
package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/internal/wait"
	"drover/pools/boots"
)

// Watch follows machines.
type Watch struct {
	Log      *Log
	Rack     *lab.Rack
	Drover   *lab.Drover
	Cluster  func(name string) site.Cluster // as its administrator; those that plans name exist
	Machines []*Machine                     // that were powered on
}

// longest is how much of a detail or an error is shown; drover has it all.
const longest = 160

// silence is how long drover may not answer: other work may share the machine.
const silence = time.Minute

// Ready prints each step of each boot as drover tells it, and follows each machine until
// it is Ready in its cluster and its pod runs.
func (w *Watch) Ready(ctx context.Context) error {
	heartbeat, heard := time.Now(), time.Now()
	for {
		boots, err := w.Drover.Boots(ctx)
		switch {
		case err == nil:
			heard = time.Now()
		case time.Since(heard) > silence:
			return err
		}
		for _, m := range w.Machines {
			if w.follow(m, boots) {
				heartbeat = time.Now()
			}
			if !m.done && m.joined() {
				w.advance(ctx, m)
			}
			if !m.guest.Running() {
				return fmt.Errorf("machine %s is off: %s", m.Name, strings.Join(m.guest.Tail(1), ""))
			}
		}
		if done, all := w.Count(); done == all {
			return nil
		}
		if time.Since(heartbeat) > 15*time.Second {
			heartbeat = time.Now()
			w.Log.Say("waiting: %s", w.waiting())
		}
		if wait.Sleep(ctx, time.Second) != nil {
			return fmt.Errorf("%s: %w", w.waiting(), context.Cause(ctx))
		}
	}
}

// Count returns how many machines are where they should be, and of how many.
func (w *Watch) Count() (ready, all int) {
	for _, m := range w.Machines {
		if m.done {
			ready++
		}
	}
	return ready, len(w.Machines)
}

// waiting says what each unfinished machine is waited for.
func (w *Watch) waiting() string {
	var parts []string
	for _, m := range w.Machines {
		if !m.done {
			parts = append(parts, fmt.Sprintf("%s %s", m.Plan.Node, m.state))
		}
	}
	return strings.Join(parts, "; ")
}

// follow prints what is new of a machine's boot, and reports whether there was
// anything.
func (w *Watch) follow(m *Machine, all []boots.Record) bool {
	i := slices.IndexFunc(all, func(b boots.Record) bool { return b.MAC.String() == m.MAC() })
	if i < 0 {
		m.state = "has not asked for an address yet"
		return false
	}
	if all[i].ID != m.boot.ID {
		m.shown = 0 // a new boot
	}
	m.boot = all[i]
	steps := m.boot.Steps
	fresh := steps[min(m.shown, len(steps)):]
	for _, s := range fresh {
		text := fmt.Sprintf("%-22s %-12s %6.1f s", m.Plan.Node, s.Step, s.Time.Sub(m.boot.Started).Seconds())
		for _, more := range []string{s.Detail, s.Error} {
			if len(more) > longest {
				more = more[:longest] + "..."
			}
			if more != "" {
				text = fmt.Sprint(text, "  ", more)
			}
		}
		w.Log.Say("%s", text)
	}
	m.shown = len(steps)
	if len(steps) > 0 && !m.done {
		m.state = fmt.Sprintf("is at %q", steps[len(steps)-1].Step)
	}
	return len(fresh) > 0
}

// advance looks at the machine's cluster, and notes how far it is there:
// drover's word is not enough.
func (w *Watch) advance(ctx context.Context, m *Machine) {
	podIP, err := site.LookIn(ctx, w.Cluster(m.Plan.Cluster), m.Plan)
	switch {
	case errors.Is(err, site.ErrNoNode): // what drover tells of the boot says more
	case err != nil:
		m.state = err.Error()
	default:
		m.done = true
		w.Log.Say("%-22s Ready in %s, runs a pod at %s  (%.1f s after power-on)",
			m.Plan.Node, m.Plan.Cluster, podIP, time.Since(m.guest.Started).Seconds())
	}
}
