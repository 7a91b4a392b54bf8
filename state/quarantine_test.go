package state_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

func TestQuarantineIsLogged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, _, err := s.Leases.Offer(plan(1), addr(3), epoch); err != nil {
		t.Fatal(err)
	}
	if !s.Leases.Decline(plan(1), addr(3), "in use by <52:54:00:ab:cd:ef> \"\xff"+strings.Repeat("x", 1000), epoch) {
		t.Fatal("Decline: got false")
	}
	s = reopen(t, s, dir)
	all := s.Leases.List()
	if len(all) != 1 {
		t.Fatalf("got %+v, want one", all)
	}
	got := all[0]
	if !strings.HasPrefix(got.Declined, "in use by <52:54:00:ab:cd:ef> \"?xx") || len(got.Declined) != 200 {
		t.Errorf("got the reason %q", got.Declined)
	}
	got.Declined = "x"
	want := pools.Lease{Address: addr(3), MAC: mac(1), Node: plan(1).Node, Pool: "catchall", Expires: epoch.Add(time.Hour), Declined: "x"}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, ok := s.Leases.At(addr(3)); ok {
		t.Error("At takes the machine that declined for the one that uses it")
	}
	if _, ok := s.Leases.Of(mac(1)); ok {
		t.Error("Of knows a declined address")
	}
	_, err := s.Leases.Commit(plan(2), addr(3), epoch.Add(time.Minute))
	if want := "10.0.0.3 is in quarantine until 2026-11-20T13:00:00Z (52:54:00:00:00:01 declined it: in use by"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// wide returns the plan of a machine in a range of many addresses.
func wide(n int) *resolve.Plan {
	p := plan(n)
	p.Range = pools.Range{First: netip.MustParseAddr("10.1.0.0"), Last: netip.MustParseAddr("10.1.255.255")}
	return p
}

// declineAll has machines decline what they are offered, each a second after the one before.
func declineAll(t *testing.T, l *state.Leases, machines int) (now time.Time) {
	t.Helper()
	now = epoch
	for n := range machines {
		a, _, err := l.Offer(wide(n), netip.Addr{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Decline(plan(n), a, "in use", now) {
			t.Fatalf("%s is not in quarantine", a)
		}
		now = now.Add(time.Second)
	}
	return now
}

// One host that declines addresses in the name of ever new machines fills neither RAM nor disk,
// nor the place of leases. The oldest quarantines go first.
func TestQuarantinesAreBounded(t *testing.T) {
	const limit, share, declined = 40, 5, 200
	dir := t.TempDir()
	s := open(t, dir)
	s.Leases.SetLimit(limit)
	now := declineAll(t, s.Leases, declined)
	for range 2 {
		all := s.Leases.List()
		for _, lease := range all {
			if !lease.Expires.After(now.Add(time.Hour - (share+1)*time.Second)) {
				t.Errorf("the quarantine of %s is one of the oldest", lease.Address)
			}
		}
		if len(all) != share {
			t.Errorf("got %d quarantines, want %d", len(all), share)
		}
		s = reopen(t, s, dir)
		s.Leases.SetLimit(limit)
	}
	var last netip.Addr
	for n := range limit {
		p := wide(1000 + n)
		a, _, err := s.Leases.Offer(p, netip.Addr{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := commit(s.Leases, p, a, now); err != nil {
			t.Fatalf("lease %d of %d beside quarantines: %v", n+1, limit, err)
		}
		last = a
	}
	a, _, err := s.Leases.Offer(wide(0), netip.Addr{}, now)
	if err != nil {
		t.Fatal(err)
	}
	if s.Leases.Decline(plan(0), a, "in use", now) {
		t.Error("a quarantine has taken the place of a lease in force")
	}
	if err := commit(s.Leases, wide(0), a, now); !errors.Is(err, pools.ErrRefused) {
		t.Errorf("one lease too many: got %v, want ErrRefused", err)
	}
	if !s.Leases.Decline(plan(1000+limit-1), last, "in use", now) {
		t.Error("no quarantine in the place of the machine's own lease")
	}
	if got := len(s.Leases.List()); got != limit {
		t.Errorf("got %d leases and quarantines, want %d", got, limit)
	}
}

// One machine that declines whatever it gets, each time under another name for itself, leaves the
// range to others.
func TestQuarantinesOfOneMachine(t *testing.T) {
	const most = 4
	dir := t.TempDir()
	s := open(t, dir)
	for n := range 3 * most {
		now := epoch.Add(time.Duration(n) * time.Second)
		a, _, err := s.Leases.Offer(wide(1), netip.Addr{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Leases.Decline(plan(1), a, "in use", now) {
			t.Fatalf("%s is not in quarantine", a)
		}
	}
	for range 2 {
		all := s.Leases.List()
		if len(all) != most {
			t.Errorf("got %d quarantines, want %d", len(all), most)
		}
		for _, l := range all {
			if !l.Expires.After(epoch.Add(time.Hour + (3*most-most-1)*time.Second)) {
				t.Errorf("the quarantine of %s is one of the oldest", l.Address)
			}
		}
		s = reopen(t, s, dir)
	}
}

// Invented machines that decline a whole range do not keep others out: what has been in quarantine
// longest is probed again.
func TestDeclinedRange(t *testing.T) {
	s := open(t, t.TempDir())
	for n := range 4 {
		a, _, err := s.Leases.Offer(plan(n), netip.Addr{}, epoch)
		if err != nil || !s.Leases.Decline(plan(n), a, "in use", epoch.Add(time.Duration(n)*time.Millisecond)) {
			t.Fatalf("decline %s: %v", a, err)
		}
	}
	for n := 10; n < 14; n++ {
		a, fresh, err := s.Leases.Offer(plan(n), netip.Addr{}, epoch.Add(time.Second))
		if want := addr(n - 9); err != nil || a != want || !fresh {
			t.Errorf("machine %d: got %s, fresh %t, error %v; want %s, to be probed", n, a, fresh, err, want)
		}
	}
}

// More quarantines in the file than their share are cut to it.
func TestQuarantinesAboveTheirShare(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Leases.SetLimit(1 << 20)
	declineAll(t, s.Leases, state.MaxQuarantines+10)
	for range 2 {
		s = reopen(t, s, dir)
		if got := len(s.Leases.List()); got != state.MaxQuarantines {
			t.Errorf("got %d quarantines, want %d", got, state.MaxQuarantines)
		}
	}
}
