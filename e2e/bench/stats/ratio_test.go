package stats_test

import (
	"math"
	"strings"
	"testing"

	"drover/e2e/bench/stats"
)

func TestCompare(t *testing.T) {
	even := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1}
	tests := []struct {
		name         string
		ours, theirs []float64
		want         stats.Ratio
	}{
		{"nothing", nil, nil, stats.Ratio{}},
		{"what was not measured is left out", []float64{0, 2}, []float64{1, 1}, stats.Ratio{Median: 2, Low: 2, High: 2, Rounds: 1}},
		{"the host's speed is in both", []float64{10, 40, 20}, []float64{5, 20, 10}, stats.Ratio{Median: 2, Low: 2, High: 2, Rounds: 3}},
		// Of nine samples the lowest and the highest are left out: all nine coins
		// alike, or eight of nine, come once in 26.
		{"bounds of nine", []float64{9, 1, 8, 2, 7, 3, 6, 4, 5}, even, stats.Ratio{Median: 5, Low: 2, High: 8, Rounds: 9}},
		// Of five only all of them: once in 16.
		{"bounds of five", []float64{5, 4, 3, 2, 1}, even[:5], stats.Ratio{Median: 3, Low: 1, High: 5, Rounds: 5}},
		{"an even number", []float64{1, 2, 3, 4}, even[:4], stats.Ratio{Median: 2.5, Low: 1, High: 4, Rounds: 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := stats.Compare(tt.ours, tt.theirs); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestBounds compares the bounds with their definition, for each number of rounds.
func TestBounds(t *testing.T) {
	sure := func(n, k int) float64 { // that the median is between the k+1st and the n-kth of n
		outside := 0.0
		for i := range k + 1 {
			outside += math.Exp(lchoose(n, i) - float64(n)*math.Ln2)
		}
		return 1 - 2*outside
	}
	for n := 5; n <= 60; n++ {
		ours, theirs := make([]float64, n), make([]float64, n)
		for i := range n {
			ours[i], theirs[i] = float64(i+1), 1
		}
		r := stats.Compare(ours, theirs)
		k := int(r.Low) - 1
		if int(r.High) != n-k {
			t.Errorf("%d rounds: %+v is not even", n, r)
		}
		if sure(n, k) < 0.9 || sure(n, k+1) >= 0.9 {
			t.Errorf("%d rounds: %d left out on either side: %.3f sure, one more %.3f", n, k, sure(n, k), sure(n, k+1))
		}
	}
}

func lchoose(n, k int) float64 {
	f := func(n int) float64 { v, _ := math.Lgamma(float64(n) + 1); return v }
	return f(n) - f(k) - f(n-k)
}

func TestTie(t *testing.T) {
	tests := []struct {
		name string
		r    stats.Ratio
		most bool
		pass bool
		note string
	}{
		{"better", stats.Ratio{Median: 1.2, Low: 1.1, High: 1.3, Rounds: 9}, false, true, "1.100 to 1.300 by 9 rounds"},
		{"worse", stats.Ratio{Median: 0.9, Low: 0.8, High: 0.95, Rounds: 9}, false, false, "0.800 to"},
		{"a tie", stats.Ratio{Median: 0.99, Low: 0.97, High: 1.01, Rounds: 9}, false, true, "a tie, 0.970 to 1.010"},
		{"a little worse, for sure", stats.Ratio{Median: 0.99, Low: 0.98, High: 0.995, Rounds: 9}, false, false, ""},
		{"noise is no excuse", stats.Ratio{Median: 0.96, Low: 0.5, High: 1.5, Rounds: 9}, false, false, ""},
		{"nothing measured", stats.Ratio{}, false, false, ""},
		{"less is better", stats.Ratio{Median: 0.9, Low: 0.8, High: 1.1, Rounds: 9}, true, true, "0.800"},
		{"a tie where less is better", stats.Ratio{Median: 1.01, Low: 0.99, High: 1.02, Rounds: 9}, true, true, "a tie"},
		{"more, for sure", stats.Ratio{Median: 1.02, Low: 1.01, High: 1.03, Rounds: 9}, true, false, ""},
		{"too much more", stats.Ratio{Median: 1.04, Low: 0.9, High: 1.1, Rounds: 9}, true, false, ""},
		{"nothing measured, less is better", stats.Ratio{}, true, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.r.AtLeast("x", 1)
			if tt.most {
				c = tt.r.AtMost("x", 1)
			}
			if c.Pass != tt.pass || !strings.Contains(c.Note, tt.note) || c.Most != tt.most {
				t.Errorf("got %v", c)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	good := []stats.Check{stats.AtLeast("a", 1, 1), stats.AtMost("b", 1, 1)}
	if err := stats.Failure(good); err != nil {
		t.Errorf("all is good: %v", err)
	}
	bad := append(good, stats.AtLeast("too little", 0.9, 1), stats.AtMost("not measured", 0, 1))
	err := stats.Failure(bad)
	if err == nil || !strings.Contains(err.Error(), "2 of 4") || !strings.Contains(err.Error(), "too little") {
		t.Errorf("got %v, want two failures", err)
	}
}
