package state_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/state"
)

// tick is a clock that a test sets.
type tick struct {
	mu  sync.Mutex
	now time.Time
}

func (c *tick) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *tick) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func openNext(t *testing.T, dir string, clock *tick) (*state.Store, *state.NextBoots) {
	t.Helper()
	s, err := state.Open(dir, state.Options{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, s.NextBoots
}

func wantNext(t *testing.T, n *state.NextBoots, of, pending pools.NextBoot) {
	t.Helper()
	if got := n.Of("m1"); got != of {
		t.Errorf("got %q in force, want %q", got, of)
	}
	if got := n.Pending("m1"); got != pending {
		t.Errorf("got %q pending, want %q", got, pending)
	}
}

func TestNextBootIsForOneBoot(t *testing.T) {
	clock := &tick{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	s, n := openNext(t, dir, clock)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wantNext(t, n, "", "")
	do(n.Set(pools.NextRescue, "m1"))
	wantNext(t, n, pools.NextRescue, pools.NextRescue)

	// The DISCOVERs before the script are of the boot that takes it.
	n.Discover("m1")
	n.Discover("m1")
	clock.add(24 * time.Hour)
	wantNext(t, n, pools.NextRescue, pools.NextRescue)

	// The boot asks again and gets the same.
	do(n.Take("m1"))
	wantNext(t, n, pools.NextRescue, "")
	clock.add(9 * time.Minute)
	do(n.Take("m1"))
	wantNext(t, n, pools.NextRescue, "")

	// Also from a server that was started anew in between.
	do(s.Close())
	s, n = openNext(t, dir, clock)
	wantNext(t, n, pools.NextRescue, "")

	// The next boot does not.
	n.Discover("m1")
	wantNext(t, n, "", "")
	do(s.Close())
	_, n = openNext(t, dir, clock)
	wantNext(t, n, "", "")
}

// Without a DISCOVER, it ends with the firmware phase.
func TestNextBootEndsWithTime(t *testing.T) {
	clock := &tick{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	_, n := openNext(t, t.TempDir(), clock)
	if err := n.Set(pools.NextLocal, "m1"); err != nil {
		t.Fatal(err)
	}
	if err := n.Take("m1"); err != nil {
		t.Fatal(err)
	}
	clock.add(9 * time.Minute)
	wantNext(t, n, pools.NextLocal, "")
	if err := n.Take("m1"); err != nil { // another script of the boot is no reason to begin anew
		t.Fatal(err)
	}
	clock.add(time.Minute + time.Second)
	wantNext(t, n, "", "")
}

// While the disk takes no writes, a machine takes its next boot once. That is stored when the
// disk takes writes again.
func TestNextBootWhileTheDiskTakesNoWrites(t *testing.T) {
	for name, hangs := range map[string]bool{"full": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			clock := &tick{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
			dir := t.TempDir()
			s, n := openNext(t, dir, clock)
			if err := n.Set(pools.NextRescue, "m1"); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, err := state.Open(dir, state.Options{Now: clock.Now, Patience: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer shut(t, s)
			n = s.NextBoots
			fixture.Eventually(t, "the state is open", func() bool { return s.Health() == nil })
			heal := breakDisk(s, hangs)
			if err := n.Set(pools.NextRescue, "m2"); err == nil {
				t.Error("a next boot was set that is not stored")
			}
			for range 2 { // the second one finds a disk that is known to hang
				if err := n.Take("m1"); err != nil {
					t.Errorf("take: %v", err)
				}
				wantNext(t, n, pools.NextRescue, "")
			}
			heal()
			fixture.Eventually(t, "it is stored", func() bool {
				again, err := state.Open(copyState(t, dir), state.Options{Now: clock.Now})
				if err != nil {
					t.Fatal(err)
				}
				defer shut(t, again)
				return again.NextBoots.Pending("m1") == ""
			})
		})
	}
}

// A next boot that was refused because it could not be stored is not in force, now or after a
// restart, and the one before it is.
func TestNextBootThatIsNotStored(t *testing.T) {
	clock := &tick{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	s, n := openNext(t, dir, clock)
	if err := n.Set(pools.NextRescue, "m1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, n = openNext(t, dir, clock)
	fixture.Eventually(t, "the state is open", func() bool { return s.Health() == nil })
	heal := breakDisk(s, false)
	for _, what := range []pools.NextBoot{pools.NextLocal, ""} {
		if err := n.Set(what, "m1", "m2"); err == nil {
			t.Errorf("%q was set, and is not stored", what)
		}
		wantNext(t, n, pools.NextRescue, pools.NextRescue)
		if got := n.Of("m2"); got != "" {
			t.Errorf("after the error m2 has %q", got)
		}
	}
	heal()
	fixture.Eventually(t, "the disk has taken all", func() bool { return s.Health() == nil })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, n = openNext(t, dir, clock)
	wantNext(t, n, pools.NextRescue, pools.NextRescue)
	if got := n.Of("m2"); got != "" {
		t.Errorf("after a restart m2 has %q", got)
	}
}

// breakDisk has all writes of a store hang or fail until heal is called.
func breakDisk(s *state.Store, hangs bool) (heal func()) {
	gate := make(chan struct{})
	s.FailWrites(func() error {
		select {
		case <-gate:
			return nil
		default:
		}
		if !hangs {
			return syscall.ENOSPC
		}
		<-gate
		return nil
	})
	return func() { close(gate) }
}

func TestNextBootIsChangedAndCleared(t *testing.T) {
	clock := &tick{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	_, n := openNext(t, t.TempDir(), clock)
	for _, what := range []pools.NextBoot{pools.NextLocal, "image=debian-13", ""} {
		if err := n.Set(what, "m1"); err != nil {
			t.Fatal(err)
		}
		wantNext(t, n, what, what)
		if err := n.Take("m1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Take("m2"); err != nil {
		t.Fatal(err)
	}
	wantNext(t, n, "", "")
}

// TestNextBootsOfMany: the next boots of many nodes are set together, and outlive a restart.
func TestNextBootsOfMany(t *testing.T) {
	clock := &tick{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	s, n := openNext(t, dir, clock)
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprint("n", i))
	}
	if err := n.Set(pools.NextLocal, names...); err != nil {
		t.Fatal(err)
	}
	if err := n.Set("", names[5000:]...); err != nil {
		t.Fatal(err)
	}
	if err := n.Set(pools.NextLocal); err != nil {
		t.Errorf("of no node: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, n = openNext(t, dir, clock)
	set := 0
	for _, name := range names {
		if n.Pending(name) == pools.NextLocal {
			set++
		}
	}
	if set != 5000 || n.Pending("n0") == "" || n.Pending("n9999") != "" {
		t.Errorf("got %d of 5000 next boots", set)
	}
}
