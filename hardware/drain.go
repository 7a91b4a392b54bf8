package hardware

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"drover/hardware/bmc"
	"drover/internal/printable"
	"drover/pools"
)

// maxDrain is the longest time limit of a drain.
const maxDrain = time.Hour

// checkDrain checks the time limit of a request's drains.
func checkDrain(req pools.PowerRequest) error {
	off := []string{string(bmc.SwitchOff), string(bmc.Cycle), string(bmc.PXE)}
	switch {
	case req.Drain < 0 || req.Drain.D() > maxDrain:
		return fmt.Errorf("%w: drain %s is not from nothing to %s", pools.ErrPowerRequest, req.Drain, pools.Duration(maxDrain))
	case req.Drain > 0 && !slices.Contains(off, req.Action):
		return fmt.Errorf("%w: a drain is for %q, and not for %s", pools.ErrPowerRequest, off, req.Action)
	}
	return nil
}

// drain drains the machines of targets, and takes those that are not drained in time from
// their targets. The caller calls end when the others are switched.
func (r *powerRun) drain(ctx context.Context, all []*target) (end func()) {
	drain := r.service.Drain
	if r.limit == 0 || drain == nil {
		return func() {}
	}
	var mu sync.Mutex
	ends := map[int]func(switched bool){}
	var running sync.WaitGroup
	for _, t := range all {
		if t.lock == "" {
			continue // drover cannot switch it
		}
		for _, i := range t.at {
			running.Go(func() {
				name := r.job.Nodes[i].Name // names do not change
				step := func(text string) {
					r.update(i, func(n *pools.PowerNode) { n.Step = "draining: " + printable.Line(text, maxError) })
				}
				step("its Node is cordoned")
				done, err := drain(ctx, name, r.limit, step)
				if err != nil {
					r.end(i, bmc.Result{State: bmc.Unknown, Err: fmt.Errorf("not switched: %w", err)})
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ends[i] = done
			})
		}
	}
	running.Wait()
	for _, t := range all {
		if t.lock != "" {
			t.keep(func(i int) bool { return ends[i] != nil })
		}
	}
	return func() {
		for i, done := range ends {
			running.Go(func() { done(r.succeeded(i)) })
		}
		running.Wait()
	}
}

// succeeded reports whether a machine of the job was switched.
func (r *powerRun) succeeded(i int) bool {
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	return r.job.Nodes[i].Step == pools.PowerDone
}
