package lograte_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"drover/internal/lograte"
)

// Each host has its own lines, however many hosts there are (finding M2).
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b lograte.Budget
		host := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 28, byte(n >> 8), byte(n)}) }
		lines := func(n int) (allowed int) {
			for range 1000 {
				if b.Allow(host(n)) {
					allowed++
				}
			}
			return allowed
		}
		for n := range 1000 {
			if got := lines(n); got != 300 {
				t.Fatalf("host %d: got %d lines, want 300", n, got)
			}
		}
		if got := lines(0); got != 0 {
			t.Errorf("got %d more lines in the same minute", got)
		}
		time.Sleep(time.Minute)
		if got := lines(0); got != 300 {
			t.Errorf("got %d lines in the next minute, want 300", got)
		}
	})
}
