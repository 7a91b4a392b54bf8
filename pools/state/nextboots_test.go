package state_test

import (
	"sync"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/state"
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
	do(n.Set("m1", pools.NextRescue))
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
	clock.add(9 * time.Minute)
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
	if err := n.Set("m1", pools.NextLocal); err != nil {
		t.Fatal(err)
	}
	if err := n.Take("m1"); err != nil {
		t.Fatal(err)
	}
	clock.add(10*time.Minute + time.Second)
	wantNext(t, n, "", "")
}

func TestNextBootIsChangedAndCleared(t *testing.T) {
	clock := &tick{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	_, n := openNext(t, t.TempDir(), clock)
	for _, what := range []pools.NextBoot{pools.NextLocal, "image=debian-13", ""} {
		if err := n.Set("m1", what); err != nil {
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
