package main_test

import (
	"testing"
	"time"

	"drover/e2e/bench/stats"
	main "drover/e2e/bench/tftp"
)

// TestTie has the ties beyond the rule of package stats.
func TestTie(t *testing.T) {
	slower := stats.Ratio{Median: 0.992, Low: 0.99, High: 0.995, Rounds: 21}
	tests := []struct {
		name    string
		clients int
		delay   time.Duration
		ratio   stats.Ratio
		pass    bool
	}{
		{"a client that waits for the network", 1, time.Millisecond, slower, true},
		{"a client that waits for the server", 1, 0, slower, false},
		{"many that wait for the server", 50, time.Millisecond, slower, false},
		{"more than a hundredth", 1, time.Millisecond, stats.Ratio{Median: 0.985, Low: 0.98, High: 0.99, Rounds: 21}, false},
		{"not told from 1", 1, time.Millisecond, stats.Ratio{Median: 0.985, Low: 0.98, High: 1.01, Rounds: 21}, true},
		{"faster", 50, 0, stats.Ratio{Median: 1.5, Low: 1.4, High: 1.6, Rounds: 7}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c := main.CheckRow(tt.clients, tt.delay, tt.ratio); c.Pass != tt.pass {
				t.Errorf("got %v", c)
			}
		})
	}
}
