package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"drover/e2e/bench/stats"
)

// Rates that are the same for all servers.
const (
	commonRate = 2000                   // exchanges/s at which latency and processor time are taken
	overload   = 10                     // times the largest rate that a server completes
	retry      = 100 * time.Millisecond // after which a machine asks again in an overload
)

// measure measures all servers, in turn and as often as there are rounds.
func (b *bench) measure(ctx context.Context) (*Report, error) {
	r := newReport(b)
	for round := range b.rounds {
		for _, s := range b.chosen {
			b.say("round %d of %d: %s; load average of the host %s", round+1, b.rounds, s.name, stats.LoadAverage())
			f, err := b.figures(ctx, s, r)
			if err != nil {
				return nil, err
			}
			r.add(s.name, f)
		}
	}
	r.end()
	return r, nil
}

// figures measures one server once.
func (b *bench) figures(ctx context.Context, s server, r *Report) (f Figures, err error) {
	try := func(tool, purpose string, retry time.Duration) func(float64) (Step, error) {
		return func(rate float64) (Step, error) {
			st, err := b.step(ctx, s, tool, purpose, rate, retry)
			if err == nil {
				r.Steps = append(r.Steps, st)
			}
			return st, err
		}
	}
	rates, halvings := b.rates, 3
	if b.quick {
		rates, halvings = []float64{2000, 4000, 8000, 16000}, 0
	}
	best, err := search(rates, halvings, try(perfdhcpTool, forLoss, 0))
	if err != nil {
		return f, err
	}
	f.Perfdhcp, f.Limited = best.carried(), best.limited()
	// A slower server is measured at its own rate.
	common, err := steady(try(perfdhcpTool, forCPU, 0), commonRate)
	if err != nil {
		return f, err
	}
	if common.Loss > hopeless {
		common = best
	}
	f.CPU, f.CPUAt = common.cpuPer(), common.Rate
	if s.group() == six { // the generator has no DHCPv6
		f.RSS, f.Leases = float64(best.RSS)/1e6, float64(best.Completed)
		return f, nil
	}
	var own Step
	if !b.quick {
		if own, err = search(rates, halvings, try(ownTool, forLoss, 0)); err != nil {
			return f, err
		}
		f.Own = own.carried()
	}
	err = b.generated(&f, max(best.Rate, own.Rate), best.Rate, try)
	return f, err
}

// tryStep runs a step of a tool, for a purpose, at a rate.
type tryStep = func(tool, purpose string, retry time.Duration) func(rate float64) (Step, error)

// generated adds the figures that only the generator measures. best is the highest rate
// without loss of any tool, and lossless that of perfdhcp.
func (b *bench) generated(f *Figures, best, lossless float64, try tryStep) error {
	common, err := steady(try(ownTool, forLatency, 0), commonRate)
	if err != nil {
		return err
	}
	f.latency(common)
	peak, err := b.saturate(best, try(ownTool, forSaturation, 0))
	if err != nil {
		return err
	}
	f.Peak, f.PeakCPU = peak.Rate, peak.cpuPer()
	full, err := steady(try(ownTool, forMemory, 0), max(lowest, lossless*0.7))
	if err != nil {
		return err
	}
	f.RSS, f.Leases = float64(full.RSS)/1e6, float64(full.Completed)
	over, err := b.median(nil, overload*peak.Rate, try(ownTool, forOverload, retry))
	if err != nil {
		return err
	}
	f.Overload, f.OverloadBegun = over.Rate, over.Begun
	if f.Peak > 0 {
		f.OverloadShare = over.Rate / f.Peak
	}
	return nil
}

// median returns the median of several steps at a rate, by what they completed; the first ones
// are those given. A fast server serves its machines in a fraction of a second, so that a short
// disturbance of the host changes a single step by a third.
func (b *bench) median(steps []Step, rate float64, try func(float64) (Step, error)) (Step, error) {
	most := 5
	if b.quick {
		most = 1
	}
	for len(steps) < most {
		s, err := try(rate)
		if err != nil {
			return Step{}, err
		}
		steps = append(steps, s)
	}
	slices.SortFunc(steps, func(x, y Step) int { return cmp.Compare(x.Rate, y.Rate) })
	return steps[len(steps)/2], nil
}

// steady runs a step at a rate that a server should sustain, and repeats it once if it was
// disturbed: a server far below its limit loses nothing on its own.
func steady(try func(float64) (Step, error), rate float64) (Step, error) {
	s, err := try(rate)
	if err != nil || s.good() || s.Loss > hopeless {
		return s, err
	}
	return try(rate)
}

// saturate raises the rate until the server no longer keeps up, then far beyond, and returns
// the median of the steps at the rate with the most completed exchanges.
func (b *bench) saturate(from float64, try func(float64) (Step, error)) (peak Step, err error) {
	const most = 10 // steps
	factor, behind := 1.25, 0
	if b.quick {
		factor = 1.6
	}
	for rate := max(from, lowest) * factor; behind < 2; rate *= factor {
		s, err := try(rate)
		if err != nil {
			return peak, err
		}
		if s.Rate > peak.Rate {
			peak = s
		}
		if s.Rate < 0.9*s.Asked {
			behind++
		}
		if rate > from*math.Pow(factor, most) {
			break
		}
	}
	return b.median([]Step{peak}, peak.Asked, try)
}
