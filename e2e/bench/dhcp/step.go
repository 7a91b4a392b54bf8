package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drover/e2e/bench/stats"
	"drover/e2e/lab"
)

// A Step is one load on one server that began with an empty store.
type Step struct {
	Server  string  `json:"server"`
	Tool    string  `json:"tool"`    // perfdhcp, or own: the generator of package load
	Purpose string  `json:"purpose"` // loss, cpu, latency, saturation or overload
	Asked   float64 `json:"asked"`   // exchanges/s that the tool should begin
	Begun   float64 `json:"begun"`   // exchanges/s that it began
	Rate    float64 `json:"rate"`    // exchanges/s that were completed
	Loss    float64 `json:"loss"`    // share of exchanges that were begun and not completed

	Completed int     `json:"completed"`  // exchanges
	CPU       float64 `json:"cpuSeconds"` // of the server
	Others    float64 `json:"others"`     // share of the time in which the server's processor did other work
	RSS       int64   `json:"rssBytes"`   // peak of the server

	// Only with the tool own: milliseconds from DISCOVER to ACK.
	P50     float64 `json:"p50ms,omitempty"`
	P99     float64 `json:"p99ms,omitempty"`
	Max     float64 `json:"maxMs,omitempty"`
	Stalled float64 `json:"stalledMs,omitempty"` // in which the generator itself could not run

	machines int           // that ask
	again    bool          // they ask again when they are served
	length   time.Duration // of the step
}

// The tools of [Step].
const (
	perfdhcpTool = "perfdhcp"
	ownTool      = "own"
)

// The purposes of [Step].
const (
	forLoss       = "loss"
	forCPU        = "cpu"
	forLatency    = "latency"
	forSaturation = "saturation"
	forOverload   = "overload"
	forMemory     = "memory"
)

// perExchanges is the number of exchanges to which processor time refers.
const perExchanges = 10000

// cpuPer returns the server's processor time per 10 000 exchanges, in seconds.
func (s Step) cpuPer() float64 {
	if s.Completed == 0 {
		return 0
	}
	return s.CPU / float64(s.Completed) * perExchanges
}

// good reports whether less than 1 % was lost.
func (s Step) good() bool { return s.Completed > 0 && s.Loss < 0.01 }

// limited reports whether the tool did not reach the requested load.
func (s Step) limited() bool { return s.Begun < 0.9*s.Asked }

// carried returns the rate of a good step in exchanges/s: the requested one, because a tool
// begins a little more or less than that each time.
func (s Step) carried() float64 {
	if s.limited() {
		return s.Begun
	}
	return s.Asked
}

// disturbed is the share of other work on the server's processor from which a step is
// repeated. That of the kernel is below it.
const disturbed = 0.1

// step runs a step, and repeats it once if the host was busy with other work: then the less
// disturbed one counts, whatever its result is. With retry the machines ask until they are
// served.
func (b *bench) step(ctx context.Context, s server, tool, purpose string, rate float64, retry time.Duration) (Step, error) {
	st := Step{Server: s.name, Tool: tool, Purpose: purpose, Asked: rate, machines: s.machines, length: b.length}
	switch purpose {
	case forMemory: // all machines ask
		st.length = min(time.Duration(float64(s.machines)/rate*float64(time.Second))+time.Second, 20*time.Second)
	case forSaturation, forOverload:
		if s.group() == declared { // else a step takes a fraction of a second
			st.again, st.length = true, min(b.length, 2*time.Second)
		}
	}
	again := st
	err := b.once(ctx, s, &st, retry)
	if err != nil || st.Others < disturbed {
		return st, err
	}
	if err := b.once(ctx, s, &again, retry); err != nil || again.Others < st.Others {
		return again, err
	}
	return st, nil
}

// once runs one step and returns its result.
func (b *bench) once(ctx context.Context, s server, st *Step, retry time.Duration) error {
	err := b.with(ctx, s, func(p *lab.Process) error {
		return b.besidePages(ctx, s, func() error {
			return st.account(p.Pid, func() error { return b.apply(ctx, st, retry) })
		})
	})
	if err == nil {
		b.say("%s", st)
	}
	return err
}

// account runs f, and sets the server's processor time and memory in that time.
func (s *Step) account(pid int, f func() error) error {
	began := time.Now()
	busy, berr := stats.BusyTime(serverCPU)
	cpu, cerr := stats.CPUTime(pid)
	if err := errors.Join(berr, cerr, f()); err != nil {
		return err
	}
	cpuEnd, cerr := stats.CPUTime(pid)
	busyEnd, berr := stats.BusyTime(serverCPU)
	elapsed := time.Since(began)
	s.CPU = (cpuEnd - cpu).Seconds()
	s.Others = max(0, ((busyEnd-busy)-(cpuEnd-cpu)).Seconds()/elapsed.Seconds())
	var err error
	s.RSS, err = stats.PeakRSS(pid)
	return errors.Join(berr, cerr, err)
}

// String is the line of a step.
func (s *Step) String() string {
	line := fmt.Sprintf("%-8s %-8s %-10s %7.0f/s begun %7.0f/s completed %6.2f %% lost  %6.3f s CPU per 10 000  others %2.0f %%",
		s.Server, s.Tool, s.Purpose, s.Begun, s.Rate, 100*s.Loss, s.cpuPer(), 100*s.Others)
	if s.Tool == ownTool {
		line += fmt.Sprintf("  p50 %.2f p99 %.2f max %.2f ms", s.P50, s.P99, s.Max)
	}
	return line
}

// apply generates the load of a step, and waits a second after the last message.
func (b *bench) apply(ctx context.Context, st *Step, retry time.Duration) error {
	if st.Tool == perfdhcpTool {
		r, err := b.perfdhcp(ctx, st.machines, st.Asked, st.length)
		if err != nil {
			return err
		}
		st.Begun, st.Rate = float64(r.Discovers)/st.length.Seconds(), float64(r.Acks)/st.length.Seconds()
		st.Loss, st.Completed = 1, r.Acks
		if r.Discovers > 0 {
			st.Loss = 1 - float64(r.Acks)/float64(r.Discovers)
		}
		return nil
	}
	r, err := b.generate(ctx, st, retry)
	if err != nil {
		return err
	}
	st.Begun, st.Rate, st.Loss, st.Completed = r.Begun(), r.Rate(), r.Loss(), r.Acks
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	st.P50, st.P99, st.Max, st.Stalled = ms(r.P50), ms(r.P99), ms(r.Max), ms(r.Stalled)
	return nil
}
