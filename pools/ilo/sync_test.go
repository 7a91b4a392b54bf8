package ilo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/pools"
	"drover/pools/ilo"
)

// TestSync is a day of a chassis: what it says at each reading, and what is
// stored after it.
func TestSync(t *testing.T) {
	unreachable := fmt.Errorf("%w: no route", ilo.ErrUnreachable)
	refused := fmt.Errorf("%w: once", ilo.ErrRefused)
	full := errors.New("the disk is full")
	for _, tt := range []struct {
		name     string
		readings []any // what the chassis holds, or why nobody knows
		write    error
		stored   []string // after each reading; the last is where it stops
		status   string   // at the end
	}{
		{"nothing happens", []any{"c1n1=01", "c1n1=01"}, nil, []string{"[m1c1n1=01] 1 written", "[m1c1n1=01] 1 written"}, "1 nodes  false"},
		{"exchanged", []any{"c1n1=01 c2n1=02", "c1n1=02 c2n1=01"}, nil, []string{"[m1c1n1=01 m1c2n1=02] 1 written", "[m1c1n1=02 m1c2n1=01] 2 written"}, "2 nodes  false"},
		{"out of reach for a while", []any{"c1n1=01", unreachable, "c1n1=03"}, nil, []string{"[m1c1n1=01] 1 written", "[m1c1n1=01] 1 written", "[m1c1n1=03] 2 written"}, "1 nodes  false"},
		{"most of it is gone", []any{"c1n1=01 c2n1=02 c3n1=03", "c1n1=05"}, nil, []string{"[m1c1n1=01 m1c2n1=02 m1c3n1=03] 1 written", "[m1c1n1=01 m1c2n1=02 m1c3n1=03] 1 written"}, "3 nodes most of the chassis is missing: m1 had 3 nodes, 2 of them are not there (if that is right: --force) false"},
		{"the login is refused", []any{"c1n1=01", refused, "c1n1=03", "c1n1=03"}, nil, []string{"[m1c1n1=01] 1 written", "[m1c1n1=01] 1 written", "[m1c1n1=01] 1 written"}, "1 nodes login refused: once true"},
		{"nothing can be stored", []any{"c1n1=01"}, full, []string{"[] 1 written"}, "0 nodes store the nodes of m1: the disk is full false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				namer, err := ilo.NewNamer(ilo.Naming{Chassis: "m1", Pool: "compute"})
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex // what Run and the test share
				var nodes []pools.PoolNode
				readings, written := 0, 0
				s := &ilo.Sync{
					Chassis: "m1", Namer: namer, Interval: time.Hour,
					Read: func(context.Context) (*ilo.Inventory, error) {
						r := tt.readings[min(readings, len(tt.readings)-1)]
						readings++
						if err, ok := r.(error); ok {
							return nil, err
						}
						return chassisOf(t, r.(string)), nil
					},
					Stored: func() (out ilo.Stored) {
						mu.Lock()
						defer mu.Unlock()
						for _, n := range nodes {
							out.Nodes = append(out.Nodes, pools.NodeInfo{PoolNode: n})
						}
						return out
					},
					Write: func(changes []pools.NodeChange) error {
						mu.Lock()
						defer mu.Unlock()
						written++
						if tt.write == nil {
							nodes = after(nodes, changes)
						}
						return tt.write
					},
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); s.Run(ctx) }()
				time.Sleep(time.Minute)
				for i, want := range tt.stored {
					synctest.Wait()
					mu.Lock()
					var words []string
					for _, n := range nodes {
						words = append(words, n.Name+"="+short(fmt.Sprint(n.MACs[0])))
					}
					got := fmt.Sprintf("%v %d written", words, written)
					mu.Unlock()
					if got != want {
						t.Errorf("after reading %d: got %s, want %s", i+1, got, want)
					}
					if i < len(tt.stored)-1 {
						time.Sleep(time.Hour)
					}
				}
				st := s.Status()
				if got := fmt.Sprintf("%d nodes %s %t", st.Nodes, st.Error, st.Stopped); got != tt.status || st.Time.IsZero() {
					t.Errorf("status: got %s, want %s", got, tt.status)
				}
				cancel()
				<-done
			})
		})
	}
}

// after is nodes with changes made.
func after(nodes []pools.PoolNode, changes []pools.NodeChange) []pools.PoolNode {
	out := slices.Clone(nodes)
	for _, c := range changes {
		i := slices.IndexFunc(out, func(n pools.PoolNode) bool { return n.Name == c.New.Name })
		if i < 0 {
			out = append(out, *c.New)
		} else {
			out[i] = *c.New
		}
	}
	return out
}
