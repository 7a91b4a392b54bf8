package stats

import (
	"fmt"
	"slices"
)

// A Ratio is how drover compares with a peer.
type Ratio struct {
	Median float64 `json:"median"`
	// Low and High are the bounds between which the true median is, nine times
	// in ten. They are two of the rounds' own ratios: nothing is assumed of how
	// those are spread.
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
}

// Compare takes what each round of drover's and of the peer's gave, in the same
// order, and is the zero Ratio when there is nothing to compare.
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

// confidence is how sure the bounds of a Ratio are. With less than five rounds
// even the lowest and the highest of them are less sure.
const confidence = 0.9

// outside is how many of n sorted samples are beyond a bound on either side. The
// median is below the k+1st of n samples when at most k of n coins show heads.
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

// tie is how far a ratio may be on the wrong side of 1 and still be a tie. More
// is a loss, however noisy the host.
const tie = 0.03

// AtLeast holds the ratio against a limit. A median below it passes as a tie
// when it is so by less than 3 % and the rounds do not tell it from the limit.
func (r Ratio) AtLeast(name string, want float64) Check {
	c := Check{Name: name, Got: r.Median, Want: want, Pass: r.Rounds > 0 && r.Median >= want, Note: r.spread()}
	if !c.Pass && r.Rounds > 0 && r.Median >= want*(1-tie) && r.High >= want {
		c.Pass, c.Note = true, "a tie, "+c.Note
	}
	return c
}

// AtMost is AtLeast the other way round.
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

// Median is 0 without values. It sorts them.
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
