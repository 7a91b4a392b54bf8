package stats

import (
	"fmt"
	"slices"
)

// A Ratio is how drover compares with a peer.
type Ratio struct {
	Median float64 `json:"median"`
	// Low and High are bounds of the true median, with a confidence of nine in ten.
	// They are the ratios of two rounds, and assume no distribution.
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
}

// Compare returns the ratio of drover's rounds to those of the peer, which are in the same
// order. Without rounds it is the zero Ratio.
func Compare(ours, theirs []float64) Ratio {
	var ratios []float64
	for i := range min(len(ours), len(theirs)) {
		if ours[i] > 0 && theirs[i] > 0 {
			ratios = append(ratios, ours[i]/theirs[i])
		}
	}
	if ratios == nil {
		return Ratio{}
	}
	slices.Sort(ratios)
	n := len(ratios)
	k := outside(n)
	return Ratio{Median: Median(ratios), Low: ratios[k], High: ratios[n-1-k], Rounds: n}
}

// confidence is that of the bounds of a Ratio. With fewer than five rounds even the lowest
// and the highest ratio have less.
const confidence = 0.9

// outside returns the number of n sorted samples beyond the bound on either side. The median
// is below the k+1st of n samples with the probability that at most k of n coins show heads.
func outside(n int) int {
	// below is the probability that at most k coins show heads, both is that of
	// exactly k.
	below, exactly := 0.0, 1.0
	for range n {
		exactly /= 2
	}
	for k := range n {
		below += exactly
		if 1-2*below < confidence {
			return max(0, k-1)
		}
		exactly *= float64(n-k) / float64(k+1)
	}
	return 0
}

// tie is the largest distance of a ratio from 1, on the wrong side, that is still a tie. A
// larger one is a loss, however noisy the host is.
const tie = 0.03

// AtLeast compares the ratio with a lower limit. A median less than 3 % below it passes as a
// tie if the limit is within the bounds.
func (r Ratio) AtLeast(name string, want float64) Check {
	c := Check{Name: name, Got: r.Median, Want: want, Pass: r.Rounds > 0 && r.Median >= want, Note: r.spread()}
	if !c.Pass && r.Rounds > 0 && r.Median >= want*(1-tie) && r.High >= want {
		c.Pass, c.Note = true, "a tie, "+c.Note
	}
	return c
}

// AtMost compares the ratio with an upper limit, likewise.
func (r Ratio) AtMost(name string, want float64) Check {
	c := Check{Name: name, Got: r.Median, Want: want, Most: true, Pass: r.Rounds > 0 && r.Median <= want, Note: r.spread()}
	if !c.Pass && r.Rounds > 0 && r.Median <= want*(1+tie) && r.Low <= want {
		c.Pass, c.Note = true, "a tie, "+c.Note
	}
	return c
}

func (r Ratio) spread() string {
	return fmt.Sprintf("%.3f to %.3f by %d rounds", r.Low, r.High, r.Rounds)
}

// Median returns the median of values, or 0 without any. It sorts them.
func Median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return 0
	}
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}
