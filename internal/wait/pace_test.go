package wait_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"drover/internal/wait"
)

// TestPace: with one processor a computation sleeps after each millisecond, and not before; with more
// it never does.
func TestPace(t *testing.T) {
	for processors, want := range map[int]int{1: 3, 2: 0} {
		synctest.Test(t, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			var p wait.Pace
			naps, before := 0, time.Duration(0)
			for range 31 { // of a tenth of a millisecond
				p.Step()
				if p.Slept > before {
					naps, before = naps+1, p.Slept
				}
				time.Sleep(100 * time.Microsecond)
			}
			if naps != want || (p.Slept > 0) != (want > 0) || p.Slept > time.Millisecond {
				t.Errorf("%d processors: slept %d times, %s; want %d times", processors, naps, p.Slept, want)
			}
		})
	}
	var none *wait.Pace
	none.Step()
}
