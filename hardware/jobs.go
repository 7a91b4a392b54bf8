package hardware

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"drover/hardware/bmc"
	"drover/internal/printable"
	"drover/pools"
	"drover/pools/resolve"
)

// Bounds of power jobs.
const (
	maxJobs    = 100 // that are kept
	maxWait    = time.Hour
	bmcsAtOnce = 16 // machines with a management processor of their own
)

// Preview returns the job that [Service.Switch] would start, with the same errors.
func (s *Service) Preview(req pools.PowerRequest) (pools.PowerJob, error) {
	job, _, err := newJob(s.Farm.Farm(), "", req)
	if err != nil {
		return pools.PowerJob{}, err
	}
	job.ID = "" // there is no such job
	return *job, nil
}

// newJob returns the job of a request, not started, and its nodes.
func newJob(farm *resolve.Farm, actor string, req pools.PowerRequest) (*pools.PowerJob, []pools.NodeInfo, error) {
	if !slices.Contains(bmc.Actions(), bmc.Action(req.Action)) {
		return nil, nil, fmt.Errorf("%w: unknown action %q (one of %q)", pools.ErrPowerRequest, req.Action, bmc.Actions())
	}
	if req.Wait.D() > maxWait {
		return nil, nil, fmt.Errorf("%w: wait %s is more than %s", pools.ErrPowerRequest, req.Wait, maxWait)
	}
	if err := checkDrain(req); err != nil {
		return nil, nil, err
	}
	if req.MaxParallel < 0 {
		return nil, nil, fmt.Errorf("%w: maxParallel %d: want a number of machines, or 0 for all", pools.ErrPowerRequest, req.MaxParallel)
	}
	nodes, err := chosen(farm, req)
	if err != nil {
		return nil, nil, err
	}
	job := &pools.PowerJob{ID: strings.ToLower(rand.Text()[:10]), Action: req.Action, Actor: actor, Started: time.Now()}
	for _, n := range nodes {
		job.Nodes = append(job.Nodes, pools.PowerNode{Name: n.Name, Step: pools.PowerWaiting, State: string(bmc.Unknown), Time: job.Started})
	}
	return job, nodes, nil
}

// Switch starts a power job for a client and returns it. The errors of a request that
// cannot be executed are [pools.ErrPowerRequest] and [pools.ErrNotFound].
func (s *Service) Switch(ctx context.Context, actor string, req pools.PowerRequest) (pools.PowerJob, error) {
	farm := s.Farm.Farm()
	job, nodes, err := newJob(farm, actor, req)
	if err != nil {
		return pools.PowerJob{}, err
	}
	if err := s.recordStart(job); err != nil {
		return pools.PowerJob{}, err
	}
	s.mu.Lock()
	if s.jobs = append(s.jobs, job); len(s.jobs) > maxJobs {
		s.jobs = slices.Clone(s.jobs[len(s.jobs)-maxJobs:])
	}
	s.mu.Unlock()
	run := &powerRun{service: s, job: job, farm: farm, switcher: s.Switcher, limit: req.Drain.D()}
	run.switcher.Wait = cmp.Or(req.Wait.D(), s.Switcher.Wait)
	select {
	case s.queue <- func(ctx context.Context) { run.inGroups(ctx, nodes, req.MaxParallel) }:
	case <-ctx.Done(): // the server stops
		for i := range job.Nodes {
			run.end(i, bmc.Result{State: bmc.Unknown, Err: ctx.Err()})
		}
		run.finish()
	}
	copied, _ := s.Job(job.ID)
	return copied, nil
}

// recordStart adds the machines of a job to the audit before any command is sent. If
// that fails, no machine is switched. Reading the status needs no entry.
func (s *Service) recordStart(job *pools.PowerJob) error {
	s.Log.Info("power", "action", job.Action, "who", job.Actor, "job", job.ID, "nodes", len(job.Nodes))
	if job.Action == string(bmc.Status) {
		return nil
	}
	var entries []pools.AuditEntry
	for _, n := range job.Nodes {
		entries = append(entries, pools.AuditEntry{Time: job.Started, Actor: job.Actor, Action: "power " + job.Action, Node: n.Name, Job: job.ID, Result: "begun"})
	}
	return s.Audit.Add(entries...)
}

// Jobs returns the last jobs, the newest first.
func (s *Service) Jobs() []pools.PowerJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []pools.PowerJob{}
	for _, j := range slices.Backward(s.jobs) {
		out = append(out, copyJob(j))
	}
	return out
}

// Job returns a job by its ID.
func (s *Service) Job(id string) (pools.PowerJob, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.ID == id {
			return copyJob(j), true
		}
	}
	return pools.PowerJob{}, false
}

func copyJob(j *pools.PowerJob) pools.PowerJob {
	c := *j
	c.Nodes = slices.Clone(j.Nodes)
	return c
}

// chosen returns the nodes of a request.
func chosen(farm *resolve.Farm, req pools.PowerRequest) (out []pools.NodeInfo, err error) {
	byRule := req.Pool != "" || req.Chassis != "" || req.Tag != ""
	switch {
	case byRule && len(req.Nodes) > 0:
		return nil, fmt.Errorf("%w: name nodes, or a pool, a chassis and a tag; not both", pools.ErrPowerRequest)
	case !byRule && len(req.Nodes) == 0:
		return nil, fmt.Errorf("%w: it names no node", pools.ErrPowerRequest)
	}
	named := make(map[string]bool, len(req.Nodes))
	for _, name := range req.Nodes {
		n, ok := farm.Node(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %q", pools.ErrNotFound, name)
		case !named[name]:
			out, named[name] = append(out, n), true
		}
	}
	if !byRule {
		return out, nil
	}
	slots := newSlotIndex(farm)
	tags := map[string][]string{}
	for _, p := range farm.Config.Pools {
		tags[p.Name] = p.Tags
	}
	for _, n := range farm.Nodes() {
		c, _, _ := slots.find(n)
		fits := (req.Pool == "" || n.Pool == req.Pool) && (req.Chassis == "" || c.Name == req.Chassis) &&
			(req.Tag == "" || slices.Contains(n.Tags, req.Tag) || slices.Contains(tags[n.Pool], req.Tag))
		if fits && !n.Ignore {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no node fits", pools.ErrPowerRequest)
	}
	return out, nil
}

// powerRun is a running job.
type powerRun struct {
	service  *Service
	job      *pools.PowerJob // guarded by service.mu
	farm     *resolve.Farm
	switcher bmc.Switcher
	limit    time.Duration // of drains; 0: there are none
}

// inGroups switches the nodes of the job: at most size at a time, all for 0.
func (r *powerRun) inGroups(ctx context.Context, nodes []pools.NodeInfo, size int) {
	done := 0
	for group := range slices.Chunk(nodes, cmp.Or(size, len(nodes))) {
		all := targets(r.farm, group)
		for _, t := range all {
			for k := range t.at {
				t.at[k] += done
			}
		}
		end := r.drain(ctx, all)
		r.all(ctx, all)
		end()
		done += len(group)
	}
	r.finish()
}

// all switches all targets: chassis in parallel, single machines with a bound.
func (r *powerRun) all(ctx context.Context, all []*target) {
	var running sync.WaitGroup
	room := make(chan struct{}, bmcsAtOnce)
	for _, t := range all {
		if len(t.at) == 0 {
			continue // none of its machines is drained
		}
		running.Go(func() {
			if t.chassis == nil {
				room <- struct{}{}
				defer func() { <-room }()
			}
			if err := r.one(ctx, t); err != nil {
				for _, i := range t.at {
					r.end(i, bmc.Result{State: bmc.Unknown, Err: err})
				}
			}
		})
	}
	running.Wait()
}

// one switches the machines of one management processor.
func (r *powerRun) one(ctx context.Context, t *target) error {
	if t.lock == "" {
		return errors.New("drover cannot switch it: it is in no chassis of the config, and has no power: of its own")
	}
	unlock, err := r.service.locks.lock(ctx, t.lock)
	if err != nil {
		return err
	}
	defer unlock()
	drivers, done, err := r.service.drivers(r.farm, t)
	if err != nil {
		return err
	}
	defer done()
	machines := make([]bmc.Machine, len(drivers))
	index := map[string]int{}
	for k, d := range drivers {
		machines[k] = bmc.Machine{Name: r.job.Nodes[t.at[k]].Name, Driver: d} // names do not change
		index[machines[k].Name] = t.at[k]
	}
	s := r.switcher
	s.OnCommand = func(machine, command string) {
		r.service.Log.Info("power", "node", machine, "command", command, "job", r.job.ID, "who", r.job.Actor)
		r.update(index[machine], func(n *pools.PowerNode) { n.Step = command })
	}
	s.OnState = func(machine string, state bmc.State) {
		r.update(index[machine], func(n *pools.PowerNode) { n.State = string(state) })
	}
	for k, result := range s.Do(ctx, bmc.Action(r.job.Action), machines) {
		r.end(t.at[k], result)
	}
	return nil
}

// update changes a node of the job.
func (r *powerRun) update(i int, change func(*pools.PowerNode)) {
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	change(&r.job.Nodes[i])
	r.job.Nodes[i].Time = time.Now()
}

// end records the result of a node.
func (r *powerRun) end(i int, result bmc.Result) {
	r.update(i, func(p *pools.PowerNode) {
		p.Step, p.State = pools.PowerDone, string(result.State)
		if result.Err != nil {
			p.Step, p.Error = pools.PowerFailed, printable.Line(result.Err.Error(), maxError)
		}
	})
}

// finish records the end of the job.
func (r *powerRun) finish() {
	s := r.service
	s.mu.Lock()
	r.job.Ended = time.Now()
	job := copyJob(r.job)
	s.mu.Unlock()
	var entries []pools.AuditEntry
	failed := 0
	for _, n := range job.Nodes {
		if n.Error != "" {
			failed++
		}
		entries = append(entries, pools.AuditEntry{Time: n.Time, Actor: job.Actor, Action: "power " + job.Action, Node: n.Name, Job: job.ID, Result: cmp.Or(n.Error, n.State)})
		s.OnPower(job.Action, n.Error == "")
	}
	s.Log.Info("power done", "action", job.Action, "who", job.Actor, "job", job.ID, "nodes", len(job.Nodes), "failed", failed)
	if job.Action != string(bmc.Status) {
		s.record(entries...)
	}
}
