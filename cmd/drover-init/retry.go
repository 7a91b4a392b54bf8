package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"drover/pools/wait"
)

// backoff is the wait between tries: it doubles from Base to Max. Half of each wait is
// random, so that the machines of a rack do not all retry at the same moment.
type backoff struct {
	Base time.Duration  // 0: 500 ms
	Max  time.Duration  // 0: 10 s
	Rand func() float64 // in [0,1); nil: math/rand
	n    int
}

func (b *backoff) next() time.Duration {
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

func (b *backoff) reset() { b.n = 0 }

// retrier repeats a function until it succeeds.
type retrier struct {
	Backoff backoff
	// Sleep waits, or returns the context's error; nil: [wait.Sleep].
	Sleep func(ctx context.Context, d time.Duration) error
	// Notice is called with the error of each failed try and the wait that follows;
	// it may be nil.
	Notice func(err error, wait time.Duration)
}

// finalError is an error that a retry does not heal.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// busyError is the error of a server that sent Retry-After.
type busyError struct {
	error
	after time.Duration
	place int // position in its queue, from 1; 0: no queue
}

func (e busyError) Unwrap() error { return e.error }

// maxRetryAfter is the limit for a server's Retry-After.
const maxRetryAfter = time.Minute

// do calls try until it returns nil or a finalError, or ctx ends. It returns the last
// error of try.
func (r *retrier) do(ctx context.Context, try func(context.Context) error) error {
	pause := r.Sleep
	if pause == nil {
		pause = wait.Sleep
	}
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if final, ok := errors.AsType[finalError](err); ok {
			return final.error
		}
		if ctx.Err() != nil {
			return fmt.Errorf("gave up: %w", err)
		}
		delay := r.Backoff.next()
		busy, ok := errors.AsType[busyError](err)
		if ok && busy.after > 0 {
			// Not before Retry-After, and not all nodes at the same moment.
			delay = min(busy.after, maxRetryAfter) + delay/4
		}
		if r.Notice != nil && busy.place == 0 { // waiting in a queue is no failure
			r.Notice(err, delay)
		}
		if pause(ctx, delay) != nil {
			return fmt.Errorf("gave up: %w", err)
		}
	}
}
