// Package retry repeats what may succeed later: [Retrier]. An error says how to go on:
// [Final] ends the tries, [Busy] has the wait that a server asked for.
package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"drover/internal/wait"
)

// Backoff is the wait between tries: it doubles from Base to Max. Half of each wait is
// random, so that the machines of a rack do not all retry at the same moment.
type Backoff struct {
	Base time.Duration  // 0: 500 ms
	Max  time.Duration  // 0: 10 s
	Rand func() float64 // in [0,1); nil: math/rand
	n    int
}

// Next returns the wait before the next try.
func (b *Backoff) Next() time.Duration {
	base, limit, random := cmp.Or(b.Base, 500*time.Millisecond), cmp.Or(b.Max, 10*time.Second), b.Rand
	if random == nil {
		random = rand.Float64
	}
	d := limit
	if b.n < 30 && base<<b.n < limit { // 30: no shift into the sign bit
		d = base << b.n
	}
	b.n++
	return d/2 + time.Duration(random()*float64(d/2))
}

// Reset starts with short waits again.
func (b *Backoff) Reset() { b.n = 0 }

// Retrier repeats a function until it succeeds.
type Retrier struct {
	Backoff Backoff
	// Sleep waits, or returns the context's error; nil: [wait.Sleep].
	Sleep func(ctx context.Context, d time.Duration) error
	// Notice is called with the error of each failed try and the wait that follows;
	// it may be nil.
	Notice func(err error, wait time.Duration)
}

// Final is an error that a retry does not heal.
type Final struct{ Err error }

func (e Final) Error() string { return e.Err.Error() }

func (e Final) Unwrap() error { return e.Err }

// Busy is the error of a server that sent Retry-After.
type Busy struct {
	Err   error
	After time.Duration
	Place int // position in its queue, from 1; 0: no queue
}

func (e Busy) Error() string { return e.Err.Error() }

func (e Busy) Unwrap() error { return e.Err }

// MaxAfter is the limit for a server's Retry-After.
const MaxAfter = time.Minute

// Do calls try until it returns nil or a Final, or ctx ends. It returns the last
// error of try.
func (r *Retrier) Do(ctx context.Context, try func(context.Context) error) error {
	pause := r.Sleep
	if pause == nil {
		pause = wait.Sleep
	}
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if final, ok := errors.AsType[Final](err); ok {
			return final.Err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("gave up: %w", err)
		}
		delay := r.Backoff.Next()
		busy, ok := errors.AsType[Busy](err)
		if ok && busy.After > 0 {
			// Not before Retry-After, and not all nodes at the same moment.
			delay = min(busy.After, MaxAfter) + delay/4
		}
		if r.Notice != nil && busy.Place == 0 { // waiting in a queue is no failure
			r.Notice(err, delay)
		}
		if pause(ctx, delay) != nil {
			return fmt.Errorf("gave up: %w", err)
		}
	}
}
