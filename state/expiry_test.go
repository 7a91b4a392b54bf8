package state_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

// rangePlan is the plan of machine n in a pool with a range of addresses 10.x.y.z.
func rangePlan(n int, first, last netip.Addr) *resolve.Plan {
	p := plan(n)
	p.Range = pools.Range{First: first, Last: last}
	return p
}

// crowded returns a store with a large range whose leases have all expired, and a small
// range of ten addresses that is full at the time full.
func crowded(t testing.TB, history int) (s *state.Store, small func(n int) *resolve.Plan, full time.Time) {
	t.Helper()
	s, err := state.Open(t.TempDir(), testOptions(state.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	lease := func(p *resolve.Plan, a netip.Addr, now time.Time) {
		t.Helper()
		if _, err := s.Leases.Commit(p, a, now); err != nil {
			t.Fatal(err)
		}
	}
	for n := range history {
		lease(rangePlan(n+1000, benchAddr(0), benchAddr(1<<15-1)), benchAddr(n), epoch)
		if n%1000 == 999 { // the queue has room for some thousands
			if err := commit(s.Leases, plan(1), addr(1), epoch.Add(time.Duration(n)*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
	}
	small = func(n int) *resolve.Plan { return rangePlan(n, addr(100), addr(109)) }
	full = epoch.Add(time.Hour)
	for n := range 10 {
		lease(small(100+n), addr(100+n), full)
	}
	return s, small, full
}

// H10: a search for an expired lease in a full range inspects no lease of another range,
// however many of those have expired.
func TestFullRangeBesideAHistory(t *testing.T) {
	s, small, now := crowded(t, 3000)
	before := s.Leases.Inspected()
	const asks = 500
	for n := range asks {
		if _, _, err := s.Leases.Offer(small(50_000+n), netip.Addr{}, now.Add(time.Duration(n)*time.Millisecond)); !errors.Is(err, pools.ErrRefused) {
			t.Fatalf("ask %d: got %v, want a refusal", n, err)
		}
	}
	if got := s.Leases.Inspected() - before; got > 2*asks {
		t.Errorf("%d asks inspected %d leases", asks, got)
	}
	if got, _, err := s.Leases.Offer(small(60_000), netip.Addr{}, now.Add(time.Hour)); err != nil || !small(0).Range.Contains(got) {
		t.Errorf("when they have expired: got %s, %v", got, err)
	}
}

// H10: addresses that now belong to nodes are not inspected by every search either.
func TestReservedHistory(t *testing.T) {
	s := open(t, t.TempDir())
	for n := 1; n <= 4; n++ {
		if err := commit(s.Leases, plan(n), addr(n), epoch.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	now := epoch.Add(time.Hour)
	for n := 2; n <= 4; n++ { // all but the first, which is a node's, are in force
		if err := commit(s.Leases, plan(n), addr(n), now); err != nil {
			t.Fatal(err)
		}
	}
	p := reserving(1, plan)
	before := s.Leases.Inspected()
	for n := range 100 {
		if got, _, err := s.Leases.Offer(p(100+n), netip.Addr{}, now); err == nil {
			t.Fatalf("got an offer of %s", got)
		}
	}
	if got := s.Leases.Inspected() - before; got > 102 {
		t.Errorf("100 asks inspected %d leases", got)
	}
	if got, _, err := s.Leases.Offer(plan(300), netip.Addr{}, now.Add(61*time.Second)); err != nil || got != addr(1) {
		t.Errorf("when it is no node's any more: got %s, %v; want %s", got, err, addr(1))
	}
}

// Ranges that overlap, and ranges that change, find all their expired leases, the oldest
// first.
func TestRangesOverlap(t *testing.T) {
	s := open(t, t.TempDir())
	for n := 1; n <= 8; n++ {
		if err := commit(s.Leases, rangePlan(n, addr(1), addr(8)), addr(n), epoch.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	now := epoch.Add(time.Hour)
	ask := func(n, first, last, want int) {
		t.Helper()
		got, _, err := s.Leases.Offer(rangePlan(n, addr(first), addr(last)), netip.Addr{}, now)
		if want == 0 && err == nil || want != 0 && (err != nil || got != addr(want)) {
			t.Errorf("%d-%d: got %s, %v; want %d", first, last, got, err, want)
		}
	}
	ask(20, 3, 6, 3)
	ask(21, 5, 8, 5)
	ask(22, 1, 8, 1)
	ask(23, 4, 4, 4)
	ask(24, 3, 6, 6)
	ask(25, 3, 6, 0)
	ask(26, 6, 8, 7)
	ask(27, 1, 8, 2)
	ask(28, 1, 8, 8)
	ask(29, 1, 8, 0)
}

// BenchmarkFullRange measures a DISCOVER in a full range, beside one with a history.
func BenchmarkFullRange(b *testing.B) {
	for _, history := range []int{0, 30_000} {
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			s, small, now := crowded(b, history)
			b.ResetTimer()
			for n := range b.N {
				if _, _, err := s.Leases.Offer(small(1<<17+n), netip.Addr{}, now); err == nil {
					b.Fatal("the range is not full")
				}
			}
		})
	}
}
