package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"drover/internal/wait"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := wait.Sleep(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("got %v after %s, want nil after 1m", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := wait.Sleep(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("got %v after %s, want deadline exceeded after 1s", err, time.Since(start))
		}
		if err := wait.Sleep(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that is over: got %v", err)
		}
	})
}
