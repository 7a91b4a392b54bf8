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
// A login that was refused is not tried again: three wrong passwords lock the
// account. A new Sync, made when the config has changed, tries once more.
type Sync struct {
	Chassis  string
	Namer    *Namer
	Options  Options
	Interval time.Duration // between two readings; default 10m

	// Read asks the chassis.
	Read func(ctx context.Context) (*Inventory, error)
	// Stored returns what is stored of nodes now.
	Stored func() Stored
	// Write stores changes: all of them or none, in one step. Those without New
	// are for the log.
	Write func(changes []Change) error
	// Report is told of each reading. nil: nobody is.
	Report func(SyncStatus)

	mu     sync.Mutex
	status SyncStatus
}

// SyncStatus is how the last reading of a chassis went.
type SyncStatus struct {
	Chassis string       `json:"chassis"`
	Time    time.Time    `json:"time"`              // of the last reading; zero: none yet
	Good    time.Time    `json:"good,omitzero"`     // of the last that worked
	Nodes   int          `json:"nodes"`             // in the chassis, when it last worked
	Counts  map[Kind]int `json:"counts,omitempty"`  // of changes, when it last worked
	Notes   []string     `json:"notes,omitempty"`   // what is odd
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

// Run reads the chassis at once and then from time to time, until ctx ends or
// the chassis refuses the login.
func (s *Sync) Run(ctx context.Context) {
	interval := s.Interval
	if interval <= 0 {
		interval = 10 * time.Minute
	}
	for {
		err := s.Once(ctx)
		if ctx.Err() != nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrHostKey) {
			return
		}
		if !sleep(ctx, interval) {
			return
		}
	}
}

// Once reads the chassis once.
func (s *Sync) Once(ctx context.Context) error {
	now := time.Now()
	inv, changes, err := s.once(ctx)
	s.mu.Lock()
	st := &s.status
	st.Chassis, st.Time, st.Error, st.Stopped, st.Changes = s.Chassis, now, "", false, changes
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
	changes, err := s.Namer.Compare(inv, s.Stored(), s.Options)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range changes {
		if c.New != nil && c.Kind != Same {
			if err := s.Write(changes); err != nil {
				return nil, changes, fmt.Errorf("store the nodes of %s: %w", s.Chassis, err)
			}
			break
		}
	}
	return inv, changes, nil
}

// Merge returns nodes as they are after changes, for a store that takes all of
// them in one step.
func Merge(nodes []pools.PoolNode, changes []Change) []pools.PoolNode {
	byName := map[string]pools.PoolNode{}
	for _, c := range changes {
		if c.New != nil {
			byName[c.Name] = *c.New
		}
	}
	out := make([]pools.PoolNode, 0, len(nodes)+len(byName))
	for _, n := range nodes {
		if changed, ok := byName[n.Name]; ok {
			n = changed
			delete(byName, n.Name)
		}
		out = append(out, n)
	}
	for _, c := range changes { // in the order of the chassis
		if n, ok := byName[c.Name]; ok {
			out = append(out, n)
			delete(byName, c.Name)
		}
	}
	return out
}
