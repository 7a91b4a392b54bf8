package kube

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"drover/pools"
	"drover/pools/kube/approve"
	"drover/pools/kube/cluster"
	"drover/pools/kube/move"
	"drover/pools/kube/node"
	"drover/pools/kube/token"
)

const (
	checkTimeout = 2 * time.Second
	checkAge     = 10 * time.Second // how long the result of a check is used

	// maxJoins is the number of joins that one cluster works on; others wait. When
	// a whole room gets power, an API server answers 32 at a time soon, but all at
	// once too late.
	maxJoins = 32
)

// tenant is a cluster of the config, and what drover does there.
type tenant struct {
	*cluster.Cluster
	ctx  context.Context // done when the config does not have it any more
	stop context.CancelFunc

	joins    *semaphore.Weighted
	leases   *node.Leases
	mover    *move.Mover
	approver *approve.Approver // nil unless its loop runs
	shared   *token.Rotation   // nil unless its nodes share a token
	refresh  chan struct{}     // holds one: reconcile now
	warn     sync.Once         // that its endpoint is not the one of cluster-info

	checkMu  sync.Mutex // held during a check
	checked  time.Time
	checkErr error
}

// start makes a tenant and starts its loops. c.mu is held.
func (c *Clusters) start(conf pools.Cluster) *tenant {
	t := &tenant{
		Cluster: cluster.New(conf, c.path(conf.Kubeconfig), c.now),
		joins:   semaphore.NewWeighted(maxJoins), refresh: make(chan struct{}, 1),
	}
	t.ctx, t.stop = context.WithCancel(c.ctx)
	log := c.log().With("cluster", conf.Name)
	t.leases = node.NewLeases(t.Cluster, c.now, c.Watch, c.log())
	t.mover = &move.Mover{
		Cluster: t.Cluster, Key: c.sealKey(), Leases: t.leases, Pace: c.Pace, Gone: c.Gone, Log: c.log(), Now: c.now,
		Target: func(name string) *pools.Plan { return c.target(t, name) }, Lookup: c.lookup,
	}
	if conf.Token.Mode == pools.Shared {
		t.shared = token.NewRotation(c.minter(t), c.saved, log)
	}
	if c.ctx.Err() != nil {
		return t
	}
	c.running.Go(func() { c.reconcileLoop(t) })
	if t.UsesSecret() {
		c.running.Go(func() { t.WatchSecret(t.ctx, c.admin, log) })
	}
	if c.StartLoops && t.shared != nil {
		c.running.Go(func() { t.shared.Run(t.ctx) })
	}
	if c.StartLoops && t.Approves() {
		t.approver = &approve.Approver{
			Cluster: t.Cluster, Key: c.sealKey(), Now: c.now, Log: log,
			Machines: c.Machines, AddressOf: c.AddressOf, OnRequest: c.OnRequest,
		}
		c.running.Go(func() { t.approver.Run(t.ctx) })
	}
	return t
}

func (c *Clusters) lookup(name string) (*cluster.Cluster, error) {
	t, err := c.tenant(name)
	if err != nil {
		return nil, err
	}
	return t.Cluster, nil
}

// check returns nil if nodes can join. One check runs at a time.
func (t *tenant) check(ctx context.Context, now func() time.Time) error {
	t.checkMu.Lock()
	defer t.checkMu.Unlock()
	if age := now().Sub(t.checked); age >= 0 && age < checkAge {
		return t.checkErr
	}
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := t.Check(limited)
	if err == nil && t.approver != nil {
		err = t.approver.Err()
	}
	if ctx.Err() == nil { // else it says nothing about the cluster
		t.checked, t.checkErr = now(), err
	}
	return err
}
