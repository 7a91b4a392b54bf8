package bmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"drover/internal/wait"
)

// Driver switches one machine. On and Off send a command and do not wait for its
// effect.
type Driver interface {
	// State returns the current power state: [Unknown] for a state without a
	// constant in this package.
	State(ctx context.Context) (State, error)
	// On switches the machine on. A machine that is on stays on.
	On(ctx context.Context) error
	// Off switches the machine off at once, without its operating system.
	Off(ctx context.Context) error
	// PXEOnce makes the next boot, and only that, a boot from the network. Without an
	// error the machine has confirmed the setting, and undo restores the one before it;
	// undo is nil when the driver cannot. With an error the setting is as it was.
	PXEOnce(ctx context.Context) (undo func(ctx context.Context) error, err error)
}

// Action is a power operation.
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
	Name   string
	Driver Driver
}

// Result is the outcome of an action for one machine.
type Result struct {
	Name  string `json:"name"`
	State State  `json:"state"` // as last read
	Error string `json:"error,omitempty"`
	Err   error  `json:"-"`
}

// Switcher executes actions on the machines of one management processor. It sends one
// command at a time, because a chassis manager accepts no more. It is for one goroutine.
type Switcher struct {
	Poll time.Duration // between two readings of the state; default 5s
	Wait time.Duration // longest wait for a machine to be on, or off; default 2m

	// OnCommand is called before each command, for the log. nil: no call.
	OnCommand func(machine, command string)
	// OnState is called after each reading of a state. nil: no call.
	OnState func(machine string, s State)
}

// resendAfter is the number of polls without a change before a command is
// repeated: a node that is still powering off ignores the command to power on.
const resendAfter = 3

// Do executes an action and returns a result for each machine, in order. All machines
// complete a step before any begins the next, so that waiting for forty nodes takes as
// long as for one. A machine with an error is left as it was, as far as its processor
// answers: the boot source is set and confirmed before anything is switched off, and a machine that was
// on is switched on again.
//
// Cycle leaves machines off that are off, or are being switched off.
func (s Switcher) Do(ctx context.Context, a Action, machines []Machine) []Result {
	s.Poll, s.Wait = cmp.Or(s.Poll, 5*time.Second), cmp.Or(s.Wait, 2*time.Minute)
	n := len(machines)
	b := batch{s, make([]Result, n), machines, make([]bool, n), make([]bool, n), make([]error, n), make([]func(context.Context) error, n)}
	for i, m := range machines {
		b.results[i] = Result{Name: m.Name, State: Unknown}
	}
	b.each(ctx, "", func(i int, m Machine) (err error) {
		b.results[i].State, err = m.Driver.State(ctx)
		b.wasOn[i] = b.results[i].State == On || b.results[i].State == PoweringOn
		b.seen(i)
		return err
	})
	switch a {
	case SwitchOn:
		b.reach(ctx, On)
	case SwitchOff:
		b.reach(ctx, Off)
	case Cycle:
		for i, r := range b.results {
			b.left[i] = r.State == Off || r.State == PoweringOff
		}
		b.reach(ctx, Off)
		b.onAgain(ctx)
	case PXE:
		b.pxe(ctx)
	}
	for i, r := range b.results {
		if r.Err != nil {
			b.results[i].Error = r.Err.Error()
		}
	}
	return b.results
}

// batch is an action in progress.
type batch struct {
	Switcher
	results  []Result
	machines []Machine
	left     []bool // the action leaves the machine as it is
	wasOn    []bool // before the action

	failed []error                           // of machines that are being restored
	undo   []func(ctx context.Context) error // restores the boot source; nil: it was not set
}

// over reports whether nothing more is done with a machine: it is left as it is, or there
// was an error.
func (b *batch) over(i int) bool { return b.left[i] || b.results[i].Err != nil }

// each calls do for each machine that is not over. It stops when ctx ends.
func (b *batch) each(ctx context.Context, command string, do func(i int, m Machine) error) {
	for i, m := range b.machines {
		if b.over(i) {
			continue
		}
		if ctx.Err() != nil {
			b.results[i].Err = ctx.Err()
			continue
		}
		if command != "" && b.OnCommand != nil {
			b.OnCommand(m.Name, command)
		}
		b.results[i].Err = do(i, m)
	}
}

// reach switches all machines to a state, and waits until they report it.
func (b *batch) reach(ctx context.Context, want State) {
	b.command(ctx, want, false)
	deadline := time.Now().Add(b.Wait)
	for polls := 1; b.waiting(want) > 0; polls++ {
		if wait.Sleep(ctx, b.Poll) != nil || time.Now().After(deadline) {
			break
		}
		b.poll(ctx, want)
		if polls%resendAfter == 0 {
			b.command(ctx, want, true)
		}
	}
	b.each(ctx, "", func(i int, _ Machine) error {
		if s := b.results[i].State; s != want {
			return fmt.Errorf("it is %s after %s, and should be %s", s, b.Wait, want)
		}
		return nil
	})
}

// command sends the command for a state to the machines that are in another state; again, to those
// that are on or off. A processor that shows a change late rejects the command when it is
// sent again: the state says whether the first one had an effect.
func (b *batch) command(ctx context.Context, want State, again bool) {
	for i, m := range b.machines {
		r := &b.results[i]
		if b.over(i) || r.State == want || again && r.State != On && r.State != Off || ctx.Err() != nil {
			continue
		}
		if b.OnCommand != nil {
			b.OnCommand(m.Name, string(want))
		}
		if want == On {
			r.Err = m.Driver.On(ctx)
		} else {
			r.Err = m.Driver.Off(ctx)
		}
		if again && errors.Is(r.Err, ErrRejected) {
			r.Err = nil
		}
	}
}

// poll reads the state of the machines that have not reached want. An unreachable
// machine is [Unknown] until it answers again.
func (b *batch) poll(ctx context.Context, want State) {
	for i, m := range b.machines {
		r := &b.results[i]
		if b.over(i) || r.State == want {
			continue
		}
		state, err := m.Driver.State(ctx)
		switch {
		case errors.Is(err, ErrUnreachable):
			r.State = Unknown
		default:
			r.State, r.Err = state, err
		}
		b.seen(i)
	}
}

func (b *batch) seen(i int) {
	if b.OnState != nil {
		b.OnState(b.machines[i].Name, b.results[i].State)
	}
}

// waiting returns the number of machines that have not reached want.
func (b *batch) waiting(want State) (n int) {
	for i, r := range b.results {
		if !b.over(i) && r.State != want {
			n++
		}
	}
	return n
}
