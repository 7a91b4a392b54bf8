package main_test

import (
	"errors"
	"slices"
	"testing"

	main "drover/e2e/bench/dhcp"
)

// limit is a server that loses nothing up to a rate and half of the exchanges above it, and
// a tool whose largest rate is most.
func limit(limit, most float64, asked *[]float64) func(float64) (main.Step, error) {
	return func(rate float64) (main.Step, error) {
		*asked = append(*asked, rate)
		begun := min(rate, most)
		s := main.Step{Asked: rate, Begun: begun, Rate: begun, Completed: 100}
		if begun > limit {
			s.Loss = 0.5
		}
		return s, nil
	}
}

func TestSearch(t *testing.T) {
	rates := []float64{1000, 2000, 4000}
	tests := []struct {
		name        string
		limit, most float64
		asked       []float64
		want        float64
	}{
		{"between two rates", 3100, 1e6, []float64{1000, 2000, 4000, 3000, 3500}, 3000},
		{"above all", 5000, 1e6, []float64{1000, 2000, 4000}, 4000},
		{"the tool is slower", 5000, 3000, []float64{1000, 2000, 4000}, 3000},
		{"below all", 300, 1e6, []float64{1000, 500, 250, 375, 312.5}, 250},
		{"nothing works", 10, 1e6, []float64{1000, 500, 250, 125, 62.5, 31.25}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []float64
			best, err := main.Search(rates, 2, limit(tt.limit, tt.most, &asked))
			if err != nil || best.Rate != tt.want {
				t.Errorf("got %g, %v; want %g", best.Rate, err, tt.want)
			}
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("asked at %v, want %v", asked, tt.asked)
			}
		})
	}
}

// Other work on the host can cause a little loss.
func TestSearchTriesALossOnceMore(t *testing.T) {
	tries := 0
	best, err := main.Search([]float64{1000, 2000}, 0, func(rate float64) (main.Step, error) {
		s := main.Step{Asked: rate, Begun: rate, Rate: rate, Completed: 1}
		if tries++; tries == 1 || rate == 2000 {
			s.Loss = 0.02
		}
		return s, nil
	})
	if err != nil || best.Rate != 1000 || tries != 4 {
		t.Errorf("got %g after %d tries, %v; want 1000 after 4", best.Rate, tries, err)
	}
}

func TestSearchEndsWithAnError(t *testing.T) {
	broken := errors.New("broken")
	if _, err := main.Search([]float64{1, 2}, 3, func(float64) (main.Step, error) { return main.Step{}, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// TestCarried: two servers that kept up with the same step are equal, whatever rate the tool
// measured.
func TestCarried(t *testing.T) {
	for _, tt := range []struct {
		step main.Step
		want float64
	}{
		{main.Step{Asked: 8000, Begun: 7982, Rate: 7950}, 8000},
		{main.Step{Asked: 8000, Begun: 8010, Rate: 8010}, 8000},
		{main.Step{Asked: 32000, Begun: 21000, Rate: 20990}, 21000}, // the limit of the tool
		{main.Step{}, 0},
	} {
		if got := main.Carried(tt.step); got != tt.want {
			t.Errorf("%v/s of %v/s: got %v, want %v", tt.step.Begun, tt.step.Asked, got, tt.want)
		}
	}
}
