package hardware

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"drover/hardware/bmc"
	"drover/hardware/importer"
	"drover/hardware/moonshot"
	"drover/internal/printable"
	"drover/pools"
)

// Sync updates the stored nodes of one chassis from its inventory. It adds and changes
// nodes and never removes one. A failure changes nothing.
//
// A login that was refused is not tried again automatically: three wrong
// passwords lock the account. [Sync.Trigger], or a new Sync after a change of the
// config, tries it once more.
type Sync struct {
	Chassis pools.Chassis
	Namer   *importer.Namer
	Options importer.Options

	// Read reads the chassis.
	Read func(ctx context.Context) (*moonshot.Inventory, error)
	// Stored returns the stored nodes.
	Stored func() importer.Stored
	// Write stores changes: all of them or none, in one step. It returns
	// [pools.ErrChanged] when a node has changed since Stored.
	Write func(changes []pools.NodeChange) error
	// OnRead is called after each reading. nil: no call.
	OnRead func(st pools.ChassisStatus, changes []importer.Change)

	mu      sync.Mutex
	status  pools.ChassisStatus
	notes   []string // of the last successful reading
	trigger chan struct{}
}

// Status returns the outcome of the last reading.
func (s *Sync) Status() pools.ChassisStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, c := s.status, s.Chassis
	st.Name, st.Address, st.Via, st.Pool, st.Interval = c.Name, c.Address, c.Via, c.Pool, c.Interval
	return st
}

// Run reads the chassis at its interval and after each [Sync.Trigger], until ctx ends.
// If there is an interval, the first reading starts at once.
func (s *Sync) Run(ctx context.Context) {
	triggered, interval := s.triggers(), s.Chassis.Interval.D()
	for again := interval > 0; ; {
		if again {
			again = !givenUp(s.Once(ctx)) && interval > 0
		}
		var next <-chan time.Time
		if again {
			next = time.After(interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		case <-triggered:
			again = true
		}
	}
}

// givenUp reports whether automatic readings end after an error.
func givenUp(err error) bool { return errors.Is(err, bmc.ErrRefused) || errors.Is(err, bmc.ErrHostKey) }

// Trigger starts a reading, also when automatic readings have ended. It does not wait.
func (s *Sync) Trigger() {
	select {
	case s.triggers() <- struct{}{}:
	default: // a reading is already pending
	}
}

func (s *Sync) triggers() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trigger == nil {
		s.trigger = make(chan struct{}, 1)
	}
	return s.trigger
}

// maxError bounds the error of a chassis or of a machine, in bytes: it may contain text
// of a management processor.
const maxError = 1 << 10

// Once reads the chassis once, and stores the changes.
func (s *Sync) Once(ctx context.Context) error {
	now := time.Now()
	s.mu.Lock()
	s.status.Asking = true
	s.mu.Unlock()
	inv, changes, err := s.once(ctx)
	s.mu.Lock()
	st := &s.status
	st.Last, st.Asking, st.Error, st.Stopped = now, false, "", givenUp(err)
	if err != nil {
		st.Error = printable.Line(err.Error(), maxError)
	} else {
		st.Good, st.Nodes, st.Counts, s.notes = now, len(inv.Nodes), map[string]int{}, inv.Notes()
		for _, c := range changes {
			st.Counts[string(c.Kind)]++
		}
	}
	st.Problems = nil
	for _, c := range changes {
		if c.Kind == importer.Conflict || c.Kind == importer.Incomplete || c.Kind == importer.Missing {
			st.Problems = append(st.Problems, c.Name+": "+c.Why)
		}
	}
	st.Problems = append(st.Problems, s.notes...)
	s.mu.Unlock()
	if s.OnRead != nil {
		s.OnRead(s.Status(), changes)
	}
	return err
}

// writeTries bounds the attempts to store changes while other clients change nodes.
const writeTries = 3

func (s *Sync) once(ctx context.Context) (*moonshot.Inventory, []importer.Change, error) {
	inv, err := s.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	inv.Choose(s.Options.Select)
	for try := 1; ; try++ {
		changes, err := s.Namer.Compare(inv, s.Stored(), s.Options)
		if err != nil {
			return nil, nil, err
		}
		writes := importer.NodeChanges(changes)
		if len(writes) == 0 {
			return inv, changes, nil
		}
		err = s.Write(writes)
		switch {
		case err == nil:
			return inv, changes, nil
		case errors.Is(err, pools.ErrChanged) && try < writeTries:
			continue
		}
		return nil, changes, fmt.Errorf("store the nodes of %s: %w", s.Chassis.Name, err)
	}
}
