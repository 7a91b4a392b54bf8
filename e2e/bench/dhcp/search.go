package main

// lowest is the rate at which a search gives up, in exchanges/s.
const lowest = 25

// hopeless is a loss, as a share of exchanges, that no disturbance explains.
const hopeless = 0.2

// search finds the highest good rate: up the given rates, or down by halves if the first is
// bad, then by bisection between the highest good and the lowest bad one. A step that lost a
// little too much is repeated once, because other work on the host may have disturbed it. The
// limit of the tool ends the search as well.
func search(rates []float64, halvings int, try func(rate float64) (Step, error)) (best Step, err error) {
	twice := func(rate float64) (Step, error) {
		s, err := try(rate)
		if err != nil || s.good() || s.Loss > hopeless {
			return s, err
		}
		return try(rate)
	}
	var bad float64
	for _, rate := range rates {
		s, err := twice(rate)
		if err != nil {
			return best, err
		}
		if !s.good() {
			bad = rate
			break
		}
		best = s
		if s.limited() {
			return best, nil
		}
	}
	for rate := bad / 2; bad > 0 && best.Asked == 0 && rate >= lowest; rate /= 2 {
		s, err := twice(rate)
		if err != nil {
			return best, err
		}
		if s.good() {
			best = s
		} else {
			bad = rate
		}
	}
	for ; bad > 0 && best.Asked > 0 && halvings > 0; halvings-- {
		s, err := twice((best.Asked + bad) / 2)
		if err != nil {
			return best, err
		}
		if s.good() {
			best = s
		} else {
			bad = s.Asked
		}
	}
	return best, nil
}
