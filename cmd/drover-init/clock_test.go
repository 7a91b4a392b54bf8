package main

import (
	"testing"
	"time"
)

// TestNetbootToReady (e2e) checks that the clock is set, and that the node then joins.
func TestIsFarOff(t *testing.T) {
	server := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for now, want := range map[time.Time]bool{
		server:                                false,
		server.Add(farOff):                    false,
		server.Add(-farOff):                   false,
		server.Add(farOff + 1):                true,
		server.Add(-farOff - 1):               true,
		time.Unix(0, 0):                       true,
		server.AddDate(500, 0, 0):             true, // more than the maximum Duration
		server.In(time.FixedZone("", 2*3600)): false,
	} {
		if got := isFarOff(now, server); got != want {
			t.Errorf("%v: got %t, want %t", now, got, want)
		}
		for _, wrong := range []time.Time{{}, time.Unix(0, 0), written.Add(-time.Hour)} {
			if isFarOff(now, wrong) {
				t.Errorf("%v: set to %v", now, wrong)
			}
		}
	}
}
