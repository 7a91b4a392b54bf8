package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		random float64
		want   []time.Duration
	}{
		{"shortest", 0, []time.Duration{500, 1000, 2000, 4000, 5000, 5000}},
		{"middle", 0.5, []time.Duration{750, 1500, 3000, 6000, 7500, 7500}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := backoff{Base: time.Second, Rand: func() float64 { return tt.random }}
			var got []time.Duration
			for range tt.want {
				got = append(got, b.next()/time.Millisecond)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %d ms, want %d", got, tt.want)
			}
			for range 100 {
				if d := b.next(); d <= 0 || d > 10*time.Second {
					t.Fatalf("after many tries: got %v", d)
				}
			}
			b.reset()
			if got := b.next() / time.Millisecond; got != tt.want[0] {
				t.Errorf("after reset: got %d ms, want %d", got, tt.want[0])
			}
		})
	}
}

func TestRetrier(t *testing.T) {
	away := errors.New("server is away")
	for _, tt := range []struct {
		name    string
		errs    []error // of successive tries; then nil
		limit   time.Duration
		want    string // error
		took    time.Duration
		notices int
	}{
		{"at once", nil, time.Minute, "", 0, 0},
		{"the third time", []error{away, away}, time.Minute, "", 1500 * time.Millisecond, 2},
		{"final", []error{away, finalError{errors.New("no room")}}, time.Minute, "no room", 500 * time.Millisecond, 1},
		{"wrapped final", []error{errors.Join(finalError{errors.New("no room")})}, time.Minute, "no room", 0, 0},
		{"out of time", slices.Repeat([]error{away}, 99), 4 * time.Second, "gave up: server is away", 4 * time.Second, 4},
		{"busy", []error{busyError{away, 7 * time.Second, 0}}, time.Minute, "", 7125 * time.Millisecond, 1},
		{"busy for too long", []error{busyError{away, time.Hour, 0}}, time.Hour, "", time.Minute + 125*time.Millisecond, 1},
		{"busy without a time", []error{busyError{away, 0, 0}}, time.Hour, "", 500 * time.Millisecond, 1},
		{"in its queue", []error{busyError{away, time.Second, 3}}, time.Hour, "", 1125 * time.Millisecond, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				notices, tries := 0, 0
				r := retrier{
					Backoff: backoff{Base: time.Second, Rand: func() float64 { return 0 }},
					Notice:  func(error, time.Duration) { notices++ },
				}
				start := time.Now()
				err := r.do(ctx, func(context.Context) error {
					tries++
					if tries <= len(tt.errs) {
						return tt.errs[tries-1]
					}
					return nil
				})
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
					t.Errorf("got error %v, want %q", err, tt.want)
				}
				if got := time.Since(start); got != tt.took {
					t.Errorf("took %v, want %v", got, tt.took)
				}
				if notices != tt.notices {
					t.Errorf("got %d notices, want %d", notices, tt.notices)
				}
			})
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		in   string
		want time.Duration
	}{
		{"", 0},
		{"5", 5 * time.Second},
		{"-5", 0},
		{"99999999999", time.Minute},
		{"soon", 0},
		{"Fri, 20 Nov 2026 12:00:30 GMT", 30 * time.Second},
		{"Fri, 20 Nov 2026 11:00:00 GMT", 0},
		{"Fri, 20 Nov 2099 11:00:00 GMT", time.Minute},
	} {
		if got := retryAfter(tt.in, now); got != tt.want {
			t.Errorf("retryAfter(%q): got %v, want %v", tt.in, got, tt.want)
		}
	}
	if got := retryAfter(strings.Repeat("9", 400), now); got != 0 {
		t.Errorf("a number out of range: got %v, want 0", got)
	}
}
