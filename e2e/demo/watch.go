package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// longest is how much of a detail or an error is shown; drover has it all.
const longest = 160

// watch prints each step of each boot as drover tells it, and follows each
// machine until it is Ready in its cluster and its pod runs.
func (d *demo) watch(ctx context.Context) error {
	heartbeat := time.Now()
	for {
		boots, err := d.Drover.Boots(ctx)
		if err != nil {
			return err
		}
		done := 0
		for _, m := range d.machines {
			if d.follow(m, boots) {
				heartbeat = time.Now()
			}
			if !m.done && m.joined() {
				d.advance(ctx, m)
			}
			if m.done {
				done++
			}
			if !m.guest.Running() {
				return fmt.Errorf("machine %s is off: %s", m.Name, strings.Join(m.guest.Tail(1), ""))
			}
		}
		if done == len(d.machines) {
			return nil
		}
		if time.Since(heartbeat) > 15*time.Second {
			heartbeat = time.Now()
			d.log.say("waiting: %s", d.waiting())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", d.waiting(), context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// waiting says what each unfinished machine is waited for.
func (d *demo) waiting() string {
	var parts []string
	for _, m := range d.machines {
		if !m.done {
			parts = append(parts, fmt.Sprintf("%s %s", m.plan.Node, m.state))
		}
	}
	return strings.Join(parts, "; ")
}

// follow prints what is new of a machine's boot, and reports whether there was
// anything.
func (d *demo) follow(m *machine, all []boots.Record) bool {
	i := slices.IndexFunc(all, func(b boots.Record) bool { return b.MAC.String() == m.mac() })
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
		text := fmt.Sprintf("%-22s %-12s %6.1f s", m.plan.Node, s.Step, s.Time.Sub(m.boot.Started).Seconds())
		for _, more := range []string{s.Detail, s.Error} {
			if len(more) > longest {
				more = more[:longest] + "..."
			}
			if more != "" {
				text = fmt.Sprint(text, "  ", more)
			}
		}
		d.log.say("%s", text)
	}
	m.shown = len(steps)
	if len(steps) > 0 && !m.done {
		m.state = fmt.Sprintf("is at %q", steps[len(steps)-1].Step)
	}
	return len(fresh) > 0
}

// joined reports whether the machine says that it has joined its cluster. Before
// that there is nothing to see there, and each look takes a guest's time.
func (m *machine) joined() bool {
	_, ok := m.boot.Reached(boots.StepJoined)
	return ok
}

// advance looks at the machine's cluster, and notes how far it is there:
// drover's word is not enough.
func (d *demo) advance(ctx context.Context, m *machine) {
	podIP, err := d.Look(ctx, m.plan)
	switch {
	case errors.Is(err, site.ErrNoNode): // what drover tells of the boot says more
	case err != nil:
		m.state = err.Error()
	default:
		m.done = true
		d.log.say("%-22s Ready in %s, runs a pod at %s  (%.1f s after power-on)",
			m.plan.Node, m.plan.Cluster, podIP, time.Since(m.guest.Started).Seconds())
	}
}
