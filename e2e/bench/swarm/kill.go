package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// halfImage is the moment in which a machine has half of its root image.
const halfImage = "half-image"

// killSteps are the moments in which a server can be killed.
func killSteps() (all []string) {
	for _, s := range steps() {
		if all = append(all, s.name); s.name == "image" {
			all = append(all, halfImage)
		}
	}
	return all
}

// kills returns the steps of -kill; nil if one is unknown.
func (o *options) kills() (all []string) {
	if o.kill == "all" {
		return killSteps()
	}
	for step := range strings.SplitSeq(o.kill, ",") {
		if !slices.Contains(killSteps(), step) {
			return nil
		}
		all = append(all, step)
	}
	return all
}

// gate holds all machines before a step until the last one is there. Then it kills a server.
type gate struct {
	step string
	need int // machines
	kill func()

	mu   sync.Mutex
	here map[int]bool
	open chan struct{}
}

func newGate(step string, need int, kill func()) *gate {
	return &gate{step: step, need: need, kill: kill, here: map[int]bool{}, open: make(chan struct{})}
}

// pass waits at the gate, once in all boots of a machine.
func (g *gate) pass(ctx context.Context, machine int, step string) {
	if g == nil || step != g.step {
		return
	}
	g.mu.Lock()
	last := !g.here[machine] && len(g.here) == g.need-1
	g.here[machine] = true
	g.mu.Unlock()
	if last {
		g.kill()
		close(g.open)
	}
	select {
	case <-g.open:
	case <-ctx.Done():
	}
}

// rounds boots all machines once for each step of -kill. One server is killed at that step, each
// in its turn; when all machines are up, it comes back. Both servers must then show each boot as
// ended: none has kept a boot that went on at the other one.
func (s *swarm) rounds(ctx context.Context, load string) (*Report, error) {
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for i, step := range s.kills() {
		victim, survivor := i%2, 1-i%2
		s.gate = newGate(step, s.machines, func() {
			if err := s.drovers[victim].Kill(); err != nil {
				s.fail("kill: %v", err)
			}
		})
		started := time.Now()
		s.boot(limited)
		up := time.Since(started)
		if len(s.failed) == 0 {
			s.confirm(limited, true, s.drovers[survivor])
		}
		if len(s.failed) > 0 || limited.Err() != nil {
			break
		}
		if err := s.spaces[victim].StartDrover(limited, s.drovers[victim]); err != nil {
			return nil, err
		}
		s.confirm(limited, false, s.drovers...)
		say(s.log, "server %d killed at %s: all up after %.1f s", victim+1, step, up.Seconds())
	}
	if err := s.readLog(); err != nil {
		return nil, err
	}
	r := s.report()
	r.Rounds = len(s.kills())
	r.Load, r.Seconds = load, time.Since(begin).Seconds()
	return r, nil
}
