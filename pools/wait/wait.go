// Package wait has the one way to sleep that a context ends: [Sleep]. It knows
// nothing of retries; the callers choose their delays.
package wait

import (
	"context"
	"time"
)

// Sleep waits for d, or returns the context's error when that ends first. A
// context that has ended already returns its error, also for a d of zero.
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
