// Package wait has [Sleep], which a context can end, and [Pace] for long computations. It knows
// nothing of retries: the callers choose their delays.
package wait

import (
	"context"
	"time"
)

// Sleep waits for d and returns nil. When ctx ends first, or has ended already, it
// returns the context's error at once, also for a d of zero.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
