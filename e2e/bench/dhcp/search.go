package main

// lowest is the rate at which a search gives up, in exchanges/s.
const lowest = 25

// hopeless is the share of exchanges whose loss no disturbance explains.
const hopeless = 0.2

// search finds the highest rate that is good: up the given rates, or down by
// halves when the first is bad, then halving between the best good and the
// lowest bad one. A step that lost a little too much is tried once more: something
// else on the host may have been in the way. The tool's own limit ends the
// search as well.
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
