package retry

import (
	"context"
	"errors"
	"slices"
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
			b := Backoff{Base: time.Second, Rand: func() float64 { return tt.random }}
			var got []time.Duration
			for range tt.want {
				got = append(got, b.Next()/time.Millisecond)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %d ms, want %d", got, tt.want)
			}
			for range 100 {
				if d := b.Next(); d <= 0 || d > 10*time.Second {
					t.Fatalf("after many tries: got %v", d)
				}
			}
			b.Reset()
			if got := b.Next() / time.Millisecond; got != tt.want[0] {
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
		{"final", []error{away, Final{Err: errors.New("no room")}}, time.Minute, "no room", 500 * time.Millisecond, 1},
		{"wrapped final", []error{errors.Join(Final{Err: errors.New("no room")})}, time.Minute, "no room", 0, 0},
		{"out of time", slices.Repeat([]error{away}, 99), 4 * time.Second, "gave up: server is away", 4 * time.Second, 4},
		{"busy", []error{Busy{Err: away, After: 7 * time.Second, Place: 0}}, time.Minute, "", 7125 * time.Millisecond, 1},
		{"busy for too long", []error{Busy{Err: away, After: time.Hour, Place: 0}}, time.Hour, "", time.Minute + 125*time.Millisecond, 1},
		{"busy without a time", []error{Busy{Err: away, After: 0, Place: 0}}, time.Hour, "", 500 * time.Millisecond, 1},
		{"in its queue", []error{Busy{Err: away, After: time.Second, Place: 3}}, time.Hour, "", 1125 * time.Millisecond, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				notices, tries := 0, 0
				r := Retrier{
					Backoff: Backoff{Base: time.Second, Rand: func() float64 { return 0 }},
					Notice:  func(error, time.Duration) { notices++ },
				}
				start := time.Now()
				err := r.Do(ctx, func(context.Context) error {
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
