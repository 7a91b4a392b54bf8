package ilo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Power switches one machine. Its methods say what is to happen and do not wait
// for it, except PXEOnce, which is checked.
type Power interface {
	// State returns the power state as it is now; what is not known is Unknown.
	State(ctx context.Context) (State, error)
	// On switches the machine on; one that is on stays so.
	On(ctx context.Context) error
	// Off switches it off at once, whatever runs on it.
	Off(ctx context.Context) error
	// PXEOnce makes it boot from the network the next time, and only then. It
	// returns nil when the machine says that it will.
	PXEOnce(ctx context.Context) error
}

// Action is what is done to machines.
type Action string

// The actions.
const (
	Status    Action = "status"
	SwitchOn  Action = "on"
	SwitchOff Action = "off"
	Cycle     Action = "cycle"
	PXE       Action = "pxe" // off, and on again from the network
)

// Actions returns all actions.
func Actions() []Action { return []Action{SwitchOn, SwitchOff, Cycle, Status, PXE} }

// Machine is a machine whose power can be switched.
type Machine struct {
	Name  string
	Power Power
}

// Result is how an action ended for one machine.
type Result struct {
	Name  string `json:"name"`
	State State  `json:"state"` // as last seen
	Error string `json:"error,omitempty"`
	Err   error  `json:"-"`
}

// Switcher does actions on the machines of one chassis, one command at a time:
// a chassis manager takes no more. It is for one goroutine.
type Switcher struct {
	Poll time.Duration // between two questions for the state; default 5s
	Wait time.Duration // longest wait for a machine to be on, or off; default 2m

	// Tell is told of each command that is given, for the log. nil: nobody is.
	Tell func(machine, command string)

	// Saw is told of each state that a machine is found in. nil: nobody is.
	Saw func(machine string, s State)
}

// resendAfter is how many polls a machine may stay as it is before it is told
// again: a node that is still powering off does not hear that it is to be on.
const resendAfter = 3

// Do does an action. All machines go through a step before any goes to the next:
// to wait for forty nodes takes as long as for one.
//
// For PXE the order matters: some firmware forgets where to boot from when it is
// switched off, so that is said in between, to a machine that is off.
func (s Switcher) Do(ctx context.Context, a Action, machines []Machine) []Result {
	b := batch{s, make([]Result, len(machines)), machines}
	if b.Poll <= 0 {
		b.Poll = 5 * time.Second
	}
	if b.Wait <= 0 {
		b.Wait = 2 * time.Minute
	}
	for i, m := range machines {
		b.results[i] = Result{Name: m.Name, State: Unknown}
	}
	b.each(ctx, "", func(i int, m Machine) (err error) {
		b.results[i].State, err = m.Power.State(ctx)
		b.saw(i)
		return err
	})
	switch a {
	case SwitchOn:
		b.reach(ctx, On)
	case SwitchOff:
		b.reach(ctx, Off)
	case Cycle:
		b.reach(ctx, Off)
		b.reach(ctx, On)
	case PXE:
		b.reach(ctx, Off)
		b.each(ctx, "pxe once", func(_ int, m Machine) error { return m.Power.PXEOnce(ctx) })
		b.reach(ctx, On)
	}
	for i, r := range b.results {
		if r.Err != nil {
			b.results[i].Error = r.Err.Error()
		}
	}
	return b.results
}

// batch is an action under way.
type batch struct {
	Switcher
	results  []Result
	machines []Machine
}

// each does a step for each machine that no earlier step failed for.
func (b *batch) each(ctx context.Context, command string, do func(i int, m Machine) error) {
	for i, m := range b.machines {
		if b.results[i].Err != nil {
			continue
		}
		if ctx.Err() != nil {
			b.results[i].Err = ctx.Err()
			continue
		}
		if command != "" && b.Tell != nil {
			b.Tell(m.Name, command)
		}
		b.results[i].Err = do(i, m)
	}
}

// reach brings all machines into a state, and waits until they say so.
func (b *batch) reach(ctx context.Context, want State) {
	b.command(ctx, want, func(State) bool { return true })
	deadline := time.Now().Add(b.Wait)
	for polls := 1; b.waiting(want) > 0; polls++ {
		if !sleep(ctx, b.Poll) || time.Now().After(deadline) {
			break
		}
		b.poll(ctx, want)
		if polls%resendAfter == 0 {
			b.command(ctx, want, func(s State) bool { return s == On || s == Off })
		}
	}
	b.each(ctx, "", func(i int, _ Machine) error {
		if s := b.results[i].State; s != want {
			return fmt.Errorf("it is %s after %s, and should be %s", s, b.Wait, want)
		}
		return nil
	})
}

// command tells machines that are not in the wanted state to be.
func (b *batch) command(ctx context.Context, want State, which func(State) bool) {
	for i, m := range b.machines {
		r := &b.results[i]
		if r.Err != nil || r.State == want || !which(r.State) || ctx.Err() != nil {
			continue
		}
		if b.Tell != nil {
			b.Tell(m.Name, string(want))
		}
		if want == On {
			r.Err = m.Power.On(ctx)
		} else {
			r.Err = m.Power.Off(ctx)
		}
	}
}

// poll asks machines that are waited for. One that cannot be reached for a
// moment is unknown, which is waited for too.
func (b *batch) poll(ctx context.Context, want State) {
	for i, m := range b.machines {
		r := &b.results[i]
		if r.Err != nil || r.State == want {
			continue
		}
		state, err := m.Power.State(ctx)
		switch {
		case errors.Is(err, ErrUnreachable):
			r.State = Unknown
		default:
			r.State, r.Err = state, err
		}
		b.saw(i)
	}
}

func (b *batch) saw(i int) {
	if b.Saw != nil {
		b.Saw(b.machines[i].Name, b.results[i].State)
	}
}

// waiting is how many machines are not yet in a state.
func (b *batch) waiting(want State) (n int) {
	for _, r := range b.results {
		if r.Err == nil && r.State != want {
			n++
		}
	}
	return n
}

// sleep waits, and tells whether the context lives.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
