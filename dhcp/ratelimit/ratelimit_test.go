package ratelimit_test

import (
	"testing"
	"time"

	"drover/dhcp/ratelimit"
)

// wrap is the time after which the limiter's clock of 32 bits begins again: 49.7 days.
const wrap = time.Duration(1<<32) * time.Millisecond

// allowed returns how many of n packets of a sender are allowed at a time.
func allowed(l *ratelimit.Limiter, hash uint64, at time.Time, n int) (count int) {
	for range n {
		if l.Allow(hash, at) {
			count++
		}
	}
	return count
}

// TestAllow: a sender gets its burst, and then one packet in each interval; a refused packet
// costs nothing, and what is not used does not add up to more than the burst.
func TestAllow(t *testing.T) {
	const burst, interval = 4, time.Second
	start := time.Unix(1000, 0)
	type step struct {
		after    time.Duration // since the start
		packets  int
		expected int
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"one burst at once", []step{{0, 100, burst}}},
		{"no packet before the interval is over", []step{{0, 4, 4}, {999 * time.Millisecond, 5, 0}, {time.Second, 5, 1}}},
		{"refused packets do not extend the wait", []step{{0, 1000, 4}, {500 * time.Millisecond, 1000, 0}, {time.Second, 1000, 1}, {2 * time.Second, 1000, 1}}},
		{"the burst returns piece by piece", []step{{0, 4, 4}, {3 * time.Second, 9, 3}, {4 * time.Second, 9, 1}}},
		{"silence does not save up", []step{{0, 1, 1}, {time.Hour, 100, burst}, {time.Hour, 100, 0}}},
		{"at the allowed pace for long", []step{{0, 1, 1}, {time.Second, 1, 1}, {2 * time.Second, 1, 1}, {3 * time.Second, 1, 1}, {4 * time.Second, 9, burst}}},
		{"a limiter that is first used late", []step{{48 * time.Hour, 9, burst}, {48*time.Hour + time.Second, 9, 1}}},
		{"across the end of its clock", []step{{wrap - 2*time.Second, 9, burst}, {wrap - time.Second, 9, 1}, {wrap, 9, 1}, {wrap + 3*time.Second, 9, 3}, {wrap + time.Hour, 9, burst}}},
		{"a clock that went back", []step{{time.Hour, 4, 4}, {0, 100, burst}, {time.Second, 9, 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ratelimit.New(start, 1, burst, interval)
			for _, s := range tt.steps {
				if got := allowed(l, 7, start.Add(s.after), s.packets); got != s.expected {
					t.Fatalf("after %v: %d of %d packets are allowed, want %d", s.after, got, s.packets, s.expected)
				}
			}
		})
	}
}

// TestClockEnd: a sender that was silent while the clock began again, or that sends for the
// first time at its end, has its whole burst; so it is whether others sent meanwhile or not.
func TestClockEnd(t *testing.T) {
	const burst, interval = 3, time.Second
	start := time.Unix(1000, 0)
	for _, others := range []bool{false, true} {
		for silent := wrap - 5*time.Second; silent < wrap+5*time.Second; silent += 500 * time.Millisecond {
			l := ratelimit.New(start, 2, burst, interval)
			allowed(l, 0, start, burst)
			for at := time.Duration(0); others && at < silent; at += 24 * time.Hour {
				l.Allow(1, start.Add(at))
			}
			if got := allowed(l, 0, start.Add(silent), 9); got != burst {
				t.Errorf("after a silence of %v, others %t: %d packets are allowed, want %d", silent, others, got, burst)
			}
			unused := ratelimit.New(start, 1, burst, interval)
			if got := allowed(unused, 0, start.Add(silent), 9); got != burst {
				t.Errorf("first packet after %v: %d are allowed, want %d", silent, got, burst)
			}
		}
	}
}

// TestRound: what a sender has used up stays used up when the limiter begins another round.
func TestRound(t *testing.T) {
	start := time.Unix(1000, 0)
	for round := wrap / 4; round <= 2*wrap; round += wrap / 4 {
		l := ratelimit.New(start, 1, 4, time.Second)
		if got := allowed(l, 0, start.Add(round-time.Millisecond), 9); got != 4 {
			t.Errorf("%v: %d packets are allowed, want 4", round, got)
		}
		if got := allowed(l, 0, start.Add(round), 9); got != 0 {
			t.Errorf("%v, in the next round: %d packets are allowed, want 0", round, got)
		}
	}
}

// TestSenders: a flood of one sender takes nothing from those of other buckets, and any hash
// has a bucket.
func TestSenders(t *testing.T) {
	start := time.Unix(1000, 0)
	l := ratelimit.New(start, 1000, 2, time.Second)
	if got := allowed(l, 1, start, 100_000); got != 2 {
		t.Errorf("a flood: %d packets are allowed, want 2", got)
	}
	for _, hash := range []uint64{0, 2, 999, 1003, 1<<64 - 1} {
		if got := allowed(l, hash, start, 9); got != 2 {
			t.Errorf("sender %d: %d packets are allowed, want 2", hash, got)
		}
	}
	if got := allowed(l, 1001, start, 9); got != 0 {
		t.Errorf("a sender of the flooder's bucket: %d packets are allowed, want 0", got)
	}
	if n := testing.AllocsPerRun(100, func() { l.Allow(1, start) }); n != 0 {
		t.Errorf("a packet allocates %v times, want 0", n)
	}
}
