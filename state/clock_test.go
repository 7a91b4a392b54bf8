package state_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/state"
)

// years are clock steps.
var years = []time.Duration{10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour, 60 * 365 * 24 * time.Hour, -50 * 365 * 24 * time.Hour}

// fillRange leases all four addresses of plan, puts one in quarantine, and offers none.
func fillRange(t *testing.T, l *state.Leases, now time.Time) {
	t.Helper()
	for n := 1; n <= 4; n++ {
		if err := commit(l, plan(n), addr(n), now); err != nil {
			t.Fatal(err)
		}
	}
	if !l.Decline(plan(4), addr(4), "in use", now) {
		t.Fatal("not declined")
	}
}

// wantNoLonger fails unless all leases end at most their longest time from now, and all
// addresses can be had by others after that.
func wantNoLonger(t *testing.T, l *state.Leases, now time.Time) {
	t.Helper()
	_, _, _ = l.Offer(plan(90), netip.Addr{}, now) // a look
	for _, lease := range l.List() {
		limit := time.Minute
		if lease.Declined != "" {
			limit = time.Hour
		}
		if left := lease.Expires.Sub(now); left > limit {
			t.Errorf("%s of %s has %s left, want at most %s", lease.Address, lease.MAC, left, limit)
		}
	}
	now = now.Add(time.Hour + time.Second)
	got := map[netip.Addr]bool{}
	for n := 1; n <= 4; n++ {
		p := plan(100 + n)
		a, _, err := l.Offer(p, netip.Addr{}, now)
		if err == nil {
			err = commit(l, p, a, now)
		}
		if err != nil {
			t.Errorf("machine %d: %v", n, err)
		}
		got[a] = true
	}
	if len(got) != 4 {
		t.Errorf("got the addresses %v, want all four", got)
	}
	unique(t, l)
}

// M8: leases and quarantines that were stored while the clock was years off last no
// longer than their own time from now, after a restart and while the store runs.
func TestClockWasYearsOff(t *testing.T) {
	for _, step := range years {
		at := func(now time.Time) state.Options {
			return testOptions(state.Options{Now: func() time.Time { return now }})
		}
		wrong := epoch.Add(step)
		t.Run(fmt.Sprintf("restart, %.0f years", step.Hours()/24/365), func(t *testing.T) {
			dir := t.TempDir()
			s, err := state.Open(dir, at(wrong))
			if err != nil {
				t.Fatal(err)
			}
			fillRange(t, s.Leases, wrong)
			shut(t, s)
			if s, err = state.Open(dir, at(epoch)); err != nil {
				t.Fatal(err)
			}
			defer shut(t, s)
			wantNoLonger(t, s.Leases, epoch)
		})
		t.Run(fmt.Sprintf("running, %.0f years", step.Hours()/24/365), func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			fillRange(t, s.Leases, epoch)
			_, _, _ = s.Leases.Offer(plan(50), netip.Addr{}, wrong)
			fillRange(t, s.Leases, wrong.Add(2*time.Hour))
			wantNoLonger(t, s.Leases, epoch.Add(5*time.Hour))
			wantNoLonger(t, s.Leases, wrong.Add(9*time.Hour))
		})
	}
}

// The wall clock of a running server is set by ten years. The monotonic clock shows that
// no time has passed, so a lease stays in force.
func TestClockIsSet(t *testing.T) {
	for _, step := range years {
		dir := t.TempDir()
		s := open(t, dir)
		now := time.Now()
		if err := commit(s.Leases, plan(1), addr(1), now); err != nil {
			t.Fatal(err)
		}
		set := state.SetWall(now.Add(time.Second), step)
		if got, ok := s.Leases.Holds(mac(1), set); !ok || got != addr(1) {
			t.Errorf("%s: the lease is gone: %s, %t", step, got, ok)
		}
		want := set.Round(0).Add(59 * time.Second)
		if l, _ := s.Leases.Of(mac(1)); l.Expires.Round(0).Sub(want).Abs() > time.Millisecond {
			t.Errorf("%s: the lease ends at %s, want %s", step, l.Expires.Round(0), want)
		}
		if err := commit(s.Leases, plan(2), addr(1), set); !errors.Is(err, pools.ErrRefused) {
			t.Errorf("%s: another machine gets the address: %v", step, err)
		}
	}
}

// M8: unknown machines that were seen while the clock was ahead do not keep out others.
func TestUnknownsOfAWrongClock(t *testing.T) {
	s := open(t, t.TempDir())
	for n := range maxUnknowns {
		s.Unknowns.Seen(seen(n, 10*365*24*hour))
	}
	for n := range 1024 {
		s.Unknowns.Seen(seen(10_000+n, n))
	}
	if got := len(s.Unknowns.List()); got != maxUnknowns {
		t.Errorf("got %d, want %d", got, maxUnknowns)
	}
	if !s.Unknowns.Forget(mac(10_000)) || !s.Unknowns.Forget(mac(11_023)) {
		t.Error("a machine that was seen now is gone")
	}
}

// M8: boots and next boots of a clock that was ahead do not last for years.
func TestBootsOfAWrongClock(t *testing.T) {
	clock := &tick{now: epoch.Add(years[0])}
	s, next := openNext(t, t.TempDir(), clock)
	s.Boots.NeedDiscover = true
	s.Boots.Discover(plan(1), clock.Now())
	if _, err := s.Boots.Issue(plan(1)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(next.Set(pools.NextRescue, "m1"), next.Take("m1")); err != nil {
		t.Fatal(err)
	}
	before, _ := s.Boots.Current(mac(1))
	clock.add(-years[0])
	wantNext(t, next, "", "")
	if _, err := s.Boots.Issue(plan(1)); !errors.Is(err, boots.ErrNotBooting) {
		t.Errorf("a script without a DISCOVER: got %v", err)
	}
	s.Boots.Discover(plan(1), clock.Now())
	if _, err := s.Boots.Issue(plan(1)); err != nil {
		t.Errorf("after a DISCOVER: %v", err)
	}
	if after, _ := s.Boots.Current(mac(1)); after.ID <= before.ID {
		t.Errorf("the new boot %q is not newer than %q", after.ID, before.ID)
	}
}
