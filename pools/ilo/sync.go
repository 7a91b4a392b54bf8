package ilo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"drover/pools"
)

// Sync keeps the nodes of one chassis as the chassis has them. It adds and
// changes nodes and never removes one. What fails changes nothing.
//
// A login that was refused is not tried again by itself: three wrong passwords
// lock the account. Who calls [Sync.Kick], or makes a new Sync when the config
// has changed, has it tried once more.
type Sync struct {
	Chassis  string
	Namer    *Namer
	Options  Options
	Interval time.Duration // between two readings; 0: only when it is kicked

	// Read asks the chassis.
	Read func(ctx context.Context) (*Inventory, error)
	// Stored returns what is stored of nodes now.
	Stored func() Stored
	// Write stores changes: all of them or none, in one step. It returns
	// [pools.ErrChanged] when a node is not as Stored has said.
	Write func(changes []pools.NodeChange) error
	// Report is told of each reading. nil: nobody is.
	Report func(SyncStatus)

	mu     sync.Mutex
	status SyncStatus
	kick   chan struct{}
}

// SyncStatus is how the last reading of a chassis went.
type SyncStatus struct {
	Chassis string       `json:"chassis"`
	Time    time.Time    `json:"time"`              // of the last reading; zero: none yet
	Good    time.Time    `json:"good,omitzero"`     // of the last that worked
	Nodes   int          `json:"nodes"`             // in the chassis, when it last worked
	Counts  map[Kind]int `json:"counts,omitempty"`  // of changes, when it last worked
	Notes   []string     `json:"notes,omitempty"`   // what is odd
	Asking  bool         `json:"asking,omitempty"`  // a reading is under way
	Error   string       `json:"error,omitempty"`   // of the last reading
	Stopped bool         `json:"stopped,omitempty"` // it is not tried again
	Changes []Change     `json:"-"`                 // of the last reading
}

// Status returns how the last reading went.
func (s *Sync) Status() SyncStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Chassis = s.Chassis
	return st
}

// Run reads the chassis from time to time, and when it is kicked, until ctx ends.
// With an interval the first reading is at once.
func (s *Sync) Run(ctx context.Context) {
	kicked := s.kicks()
	for again := s.Interval > 0; ; {
		if again {
			err := s.Once(ctx)
			again = s.Interval > 0 && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrHostKey)
		}
		var next <-chan time.Time
		if again {
			next = time.After(s.Interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		case <-kicked:
			again = true
		}
	}
}

// Kick has the chassis read now, also when it was given up. It does not wait.
func (s *Sync) Kick() {
	select {
	case s.kicks() <- struct{}{}:
	default: // it is kicked already
	}
}

func (s *Sync) kicks() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kick == nil {
		s.kick = make(chan struct{}, 1)
	}
	return s.kick
}

// Once reads the chassis once.
func (s *Sync) Once(ctx context.Context) error {
	now := time.Now()
	s.mu.Lock()
	s.status.Asking = true
	s.mu.Unlock()
	inv, changes, err := s.once(ctx)
	s.mu.Lock()
	st := &s.status
	st.Chassis, st.Time, st.Asking, st.Error, st.Stopped, st.Changes = s.Chassis, now, false, "", false, changes
	if err != nil {
		st.Error = err.Error()
		st.Stopped = errors.Is(err, ErrRefused) || errors.Is(err, ErrHostKey)
	} else {
		st.Good, st.Nodes, st.Counts, st.Notes = now, len(inv.Nodes), map[Kind]int{}, nil
		for _, c := range changes {
			st.Counts[c.Kind]++
		}
		for _, n := range append(inv.Problems, inv.Warnings...) {
			st.Notes = append(st.Notes, n.String())
		}
	}
	status := *st
	s.mu.Unlock()
	if s.Report != nil {
		s.Report(status)
	}
	return err
}

func (s *Sync) once(ctx context.Context) (*Inventory, []Change, error) {
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
		writes := NodeChanges(changes)
		if len(writes) == 0 {
			return inv, changes, nil
		}
		err = s.Write(writes)
		switch {
		case err == nil:
			return inv, changes, nil
		case errors.Is(err, pools.ErrChanged) && try < writeTries:
			continue // somebody was quicker
		}
		return nil, changes, fmt.Errorf("store the nodes of %s: %w", s.Chassis, err)
	}
}

// writeTries is how often changes are made anew when nodes have changed since
// they were looked at.
const writeTries = 3

// NodeChanges is what is to be stored of changes.
func NodeChanges(changes []Change) (out []pools.NodeChange) {
	for _, c := range changes {
		if c.New != nil && c.Kind != Same {
			out = append(out, pools.NodeChange{Old: c.Old, New: c.New})
		}
	}
	return out
}
