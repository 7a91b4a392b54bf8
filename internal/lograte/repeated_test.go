package lograte_test

import (
	"testing"
	"testing/synctest"
	"time"

	"drover/internal/lograte"
)

// TestRepeated: a problem that lasts for a day is told at its begin and each hour; a change and a
// return are told at once.
func TestRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r lograte.Repeated
		told := 0
		for range 24 * 60 {
			if r.Allow("no kubeconfig") {
				told++
			}
			time.Sleep(time.Minute)
		}
		if told != 24 {
			t.Errorf("told %d times in 24 hours", told)
		}
		for i, want := range []struct {
			problem string
			told    bool
		}{{"refused", true}, {"refused", false}, {"no kubeconfig", true}, {"", false}, {"no kubeconfig", true}, {"no kubeconfig", false}} {
			if got := r.Allow(want.problem); got != want.told {
				t.Errorf("%d: %q: got %t", i, want.problem, got)
			}
		}
	})
}
