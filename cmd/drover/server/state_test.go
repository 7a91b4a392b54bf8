package server

import (
	"errors"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
)

// sick is a state with a condition.
type sick struct {
	err     error
	damaged int
}

func (s sick) Health() error { return s.err }
func (s sick) Damage() int   { return s.damaged }

// M3, M4: /readyz says that the state is not stored, and warns of damage.
func TestStateProblems(t *testing.T) {
	if got := append(stateProblems(nil), stateProblems(sick{})...); len(got) != 0 {
		t.Errorf("a healthy state: got %v", got)
	}
	got := stateProblems(sick{errors.New("no space left on device"), 3})
	if len(got) != 2 || got[0].Warning || !got[1].Warning || got[0].Brief == "" || got[1].Brief == "" {
		t.Fatalf("got %+v, want a problem and a warning", got)
	}
	fixture.WantText(t, "problem", got[0].Problem, "no space left on device")
	fixture.WantText(t, "warning", got[1].Problem, "3 parts", "*.damaged")
}

// M8: the longest lease time is that of any subnet or pool.
func TestLongestLease(t *testing.T) {
	hours := func(n int) pools.Duration { return pools.Duration(time.Duration(n) * time.Hour) }
	c := pools.Config{Subnets: []pools.Subnet{{Lease: hours(2)}, {Lease: hours(1)}}, Pools: []pools.Pool{{Lease: hours(5)}, {}}}
	if got, want := longestLease(c), 5*time.Hour+time.Minute; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
