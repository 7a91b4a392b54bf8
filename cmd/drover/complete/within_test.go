package complete

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

// TestWithin: a source that never ends, such as a file on a server that is gone, holds a shell up
// for the limit and no longer.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, never := time.Now(), make(chan struct{})
		got := within(&cobra.Command{}, func(context.Context, *cobra.Command) []string { <-never; return []string{"late"} })
		if took := time.Since(begun); got != nil || took != limit {
			t.Errorf("got %q after %s, want nothing after %s", got, took, limit)
		}
		close(never)
	})
}
