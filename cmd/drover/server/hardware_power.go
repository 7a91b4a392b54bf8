package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"drover/pools"
	"drover/pools/ilo"
)

// Bounds of power orders.
const (
	maxJobs    = 100 // that are remembered
	maxWait    = time.Hour
	bmcsAtOnce = 16 // machines with a management processor of their own
)

// Order begins to switch machines for somebody, and returns when it has begun.
// What cannot be is [pools.ErrOrder] or [pools.ErrNotFound].
func (h *Hardware) Order(ctx context.Context, who string, o pools.PowerOrder) (pools.PowerJob, error) {
	if !slices.Contains(ilo.Actions(), ilo.Action(o.Action)) {
		return pools.PowerJob{}, fmt.Errorf("%w: unknown action %q (one of %q)", pools.ErrOrder, o.Action, ilo.Actions())
	}
	if o.Wait.D() > maxWait {
		return pools.PowerJob{}, fmt.Errorf("%w: wait %s is more than %s", pools.ErrOrder, o.Wait, maxWait)
	}
	farm := h.Live.Farm()
	nodes, err := chosen(farm, o)
	if err != nil {
		return pools.PowerJob{}, err
	}
	job := &pools.PowerJob{ID: strings.ToLower(rand.Text()[:10]), Action: o.Action, Who: who, Started: time.Now()}
	for _, n := range nodes {
		job.Nodes = append(job.Nodes, pools.PowerNode{Name: n.Name, Step: pools.PowerWaiting, State: string(ilo.Unknown), Time: job.Started})
	}
	if err := h.begun(job); err != nil {
		return pools.PowerJob{}, err
	}
	h.mu.Lock()
	if h.jobs = append(h.jobs, job); len(h.jobs) > maxJobs {
		h.jobs = slices.Clone(h.jobs[len(h.jobs)-maxJobs:])
	}
	h.mu.Unlock()
	run := &powerRun{h: h, job: job, farm: farm, switcher: h.Switcher}
	if o.Wait > 0 {
		run.switcher.Wait = o.Wait.D()
	}
	select {
	case h.orders <- func(ctx context.Context) { run.all(ctx, targets(farm, nodes)) }:
	case <-ctx.Done(): // the server stops
		for i := range job.Nodes {
			run.fail([]int{i}, ctx.Err())
		}
		run.over()
	}
	copied, _ := h.Job(job.ID)
	return copied, nil
}

// begun notes an order before anything is done: what nobody could be asked for
// later is not done. A question is no deed.
func (h *Hardware) begun(job *pools.PowerJob) error {
	h.log.Info("power", "action", job.Action, "who", job.Who, "job", job.ID, "nodes", len(job.Nodes))
	if job.Action == string(ilo.Status) {
		return nil
	}
	var entries []pools.AuditEntry
	for _, n := range job.Nodes {
		entries = append(entries, pools.AuditEntry{Time: job.Started, Who: job.Who, Action: "power " + job.Action, Node: n.Name, Job: job.ID, Result: "begun"})
	}
	return h.Audit.Add(entries...)
}

// Jobs are the orders that are remembered, the newest first.
func (h *Hardware) Jobs() []pools.PowerJob {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []pools.PowerJob{}
	for _, j := range slices.Backward(h.jobs) {
		out = append(out, copyJob(j))
	}
	return out
}

// Job is one of them.
func (h *Hardware) Job(id string) (pools.PowerJob, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, j := range h.jobs {
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

// chosen are the nodes of an order.
func chosen(farm *pools.Farm, o pools.PowerOrder) (out []pools.NodeInfo, err error) {
	byRule := o.Pool != "" || o.Chassis != "" || o.Tag != ""
	switch {
	case byRule && len(o.Nodes) > 0:
		return nil, fmt.Errorf("%w: name nodes, or a pool, a chassis and a tag; not both", pools.ErrOrder)
	case !byRule && len(o.Nodes) == 0:
		return nil, fmt.Errorf("%w: it names no node", pools.ErrOrder)
	}
	for i, name := range o.Nodes {
		n, ok := farm.Node(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %q", pools.ErrNotFound, name)
		case !slices.Contains(o.Nodes[:i], name):
			out = append(out, n)
		}
	}
	if !byRule {
		return out, nil
	}
	where := newBays(farm)
	tags := map[string][]string{}
	for _, p := range farm.Config.Pools {
		tags[p.Name] = p.Tags
	}
	for _, n := range farm.Nodes() {
		place, _, _ := where.of(n)
		fits := (o.Pool == "" || n.Pool == o.Pool) && (o.Chassis == "" || place.Name == o.Chassis) &&
			(o.Tag == "" || slices.Contains(n.Tags, o.Tag) || slices.Contains(tags[n.Pool], o.Tag))
		if fits && !n.Ignore {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no node fits", pools.ErrOrder)
	}
	return out, nil
}

// bays knows which node is in which slot.
type bays struct {
	farm   *pools.Farm
	namers map[string]*ilo.Namer // by chassis
}

func newBays(farm *pools.Farm) bays {
	b := bays{farm, map[string]*ilo.Namer{}}
	for _, c := range farm.Config.Chassis {
		if n, err := ilo.NewNamer(NamingOf(c)); err == nil { // the config was checked
			b.namers[c.Name] = n
		}
	}
	return b
}

// of returns the chassis and the slot of a node; false: it is in none that the
// config names.
func (b bays) of(n pools.NodeInfo) (pools.Chassis, ilo.Slot, bool) {
	if n.Place.Chassis != "" {
		c, ok := b.farm.Chassis(n.Place.Chassis)
		slot, err := ilo.ParseSlot(n.Place.Slot)
		return c, slot, ok && err == nil
	}
	for name, namer := range b.namers {
		if slot, ok := namer.SlotOf(n); ok {
			c, ok := b.farm.Chassis(name)
			return c, slot, ok
		}
	}
	return pools.Chassis{}, ilo.Slot{}, false
}

// target is a management processor, and which nodes of a job it switches.
type target struct {
	lock    string
	chassis *pools.Chassis // nil: a processor of one machine
	node    pools.NodeInfo // whose it is
	at      []int          // indexes of nodes of the job
	slots   []ilo.Slot     // of these
}

// targets sorts nodes by what switches them. Those of a chassis are together.
func targets(farm *pools.Farm, nodes []pools.NodeInfo) []*target {
	where := newBays(farm)
	byChassis := map[string]*target{}
	var out []*target
	for i, n := range nodes {
		if n.Power != nil {
			out = append(out, &target{lock: "machine " + n.Name, node: n, at: []int{i}})
			continue
		}
		c, slot, ok := where.of(n)
		if !ok {
			out = append(out, &target{node: n, at: []int{i}})
			continue
		}
		t := byChassis[c.Name]
		if t == nil {
			t = &target{lock: "chassis " + c.Name, chassis: &c}
			byChassis[c.Name] = t
			out = append(out, t)
		}
		t.at, t.slots = append(t.at, i), append(t.slots, slot)
	}
	return out
}

// powerRun is a job under way.
type powerRun struct {
	h        *Hardware
	job      *pools.PowerJob // h.mu
	farm     *pools.Farm
	switcher ilo.Switcher
}

// all switches everything, each chassis by itself, and single machines some at a
// time.
func (r *powerRun) all(ctx context.Context, all []*target) {
	var wait sync.WaitGroup
	room := make(chan struct{}, bmcsAtOnce)
	for _, t := range all {
		wait.Go(func() {
			if t.chassis == nil {
				room <- struct{}{}
				defer func() { <-room }()
			}
			r.one(ctx, t)
		})
	}
	wait.Wait()
	r.over()
}

// one switches the machines of one management processor.
func (r *powerRun) one(ctx context.Context, t *target) {
	free, err := func() {}, error(nil)
	if t.lock == "" {
		err = errors.New("drover cannot switch it: it is in no chassis of the config, and has no power: of its own")
	} else {
		free, err = r.h.locks.take(ctx, t.lock)
	}
	var machines []ilo.Machine
	done := func() {}
	if err == nil {
		defer free()
		machines, done, err = r.h.access(r.farm).machines(t)
	}
	defer done()
	if err != nil {
		r.fail(t.at, err)
		return
	}
	index := map[string]int{}
	for k, m := range machines {
		m.Name = r.job.Nodes[t.at[k]].Name // names do not change
		machines[k] = m
		index[m.Name] = t.at[k]
	}
	s := r.switcher
	s.Tell = func(machine, command string) {
		r.h.log.Info("power", "node", machine, "command", command, "job", r.job.ID, "who", r.job.Who)
		r.note(index[machine], func(n *pools.PowerNode) { n.Step = command })
	}
	s.Saw = func(machine string, state ilo.State) {
		r.note(index[machine], func(n *pools.PowerNode) { n.State = string(state) })
	}
	for k, result := range s.Do(ctx, ilo.Action(r.job.Action), machines) {
		r.end(t.at[k], result)
	}
}

// note changes what is known of a node of the job.
func (r *powerRun) note(i int, change func(*pools.PowerNode)) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	change(&r.job.Nodes[i])
	r.job.Nodes[i].Time = time.Now()
}

// end notes how it ended for a node.
func (r *powerRun) end(i int, result ilo.Result) {
	r.note(i, func(p *pools.PowerNode) {
		p.Step, p.State = pools.PowerDone, string(result.State)
		if result.Err != nil {
			p.Step, p.Error = pools.PowerFailed, result.Err.Error()
		}
	})
}

// fail notes the same error for several nodes.
func (r *powerRun) fail(at []int, err error) {
	for _, i := range at {
		r.end(i, ilo.Result{State: ilo.Unknown, Err: err})
	}
}

// over notes that the job is.
func (r *powerRun) over() {
	r.h.mu.Lock()
	r.job.Ended = time.Now()
	job := copyJob(r.job)
	r.h.mu.Unlock()
	var entries []pools.AuditEntry
	failed := 0
	for _, n := range job.Nodes {
		e := pools.AuditEntry{Time: n.Time, Who: job.Who, Action: "power " + job.Action, Node: n.Name, Job: job.ID, Result: n.State}
		if n.Error != "" {
			failed++
			e.Result = n.Error
		}
		entries = append(entries, e)
		r.h.onPower(job.Action, n.Error == "")
	}
	r.h.log.Info("power done", "action", job.Action, "who", job.Who, "job", job.ID, "nodes", len(job.Nodes), "failed", failed)
	if job.Action != string(ilo.Status) {
		r.h.record(entries...)
	}
}
