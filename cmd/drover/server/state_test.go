package server

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/state"
)

// sick is a state with a condition.
type sick struct {
	err     error
	damaged int
}

func (s sick) Health() error { return s.err }
func (s sick) Damage() int   { return s.damaged }

// M4: /readyz warns of damage.
func TestDamageProblems(t *testing.T) {
	if got := damageProblems(sick{}); len(got) != 0 {
		t.Errorf("a healthy state: got %v", got)
	}
	got := damageProblems(sick{damaged: 3})
	if len(got) != 1 || !got[0].Warning || got[0].Brief == "" {
		t.Fatalf("got %+v, want a warning", got)
	}
	fixture.WantText(t, "warning", got[0].Problem, "3 parts", "*.damaged")
}

// M3: the directory of the state fails if the state says that it is not stored.
func TestStateNotStored(t *testing.T) {
	for _, want := range []error{nil, errors.New("no space left on device")} {
		m := newDiskMonitor(slog.New(slog.DiscardHandler), Options{State: t.TempDir()}, sick{err: want})
		if d := m.directories[0]; !errors.Is(d.check(d.path), want) {
			t.Errorf("got %v, want %v", d.check(d.path), want)
		}
	}
}

// M8: the longest lease time is that of any subnet or pool.
func TestLongestLease(t *testing.T) {
	hours := func(n int) pools.Duration { return pools.Duration(time.Duration(n) * time.Hour) }
	c := pools.Config{Subnets: []pools.Subnet{{Lease: hours(2)}, {Lease: hours(1)}}, Pools: []pools.Pool{{Lease: hours(5)}, {}}}
	if got, want := longestLease(c), 5*time.Hour+time.Minute; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// M6: a server does not start with an empty state beside its own keys, until the
// operator says so.
func TestStateIsGone(t *testing.T) {
	testServer(t).Close() // makes the keys
	files, err := filepath.Glob("state/drover.*")
	if err != nil || len(files) < 3 {
		t.Fatalf("got the files %q, %v", files, err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)}
	if s, err := New(o); err == nil {
		s.Close()
		t.Fatal("the server starts without its state")
	} else {
		fixture.WantText(t, "error", err.Error(), "has no state, but api.token of a server that ran with it", "run: touch state/"+state.AcceptLossFile)
	}
	if err := os.WriteFile(filepath.Join("state", state.AcceptLossFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
