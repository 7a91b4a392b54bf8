package kube

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"drover/internal/lograte"
	"drover/kube/approve"
	"drover/kube/cluster"
	"drover/kube/credentials"
	"drover/kube/externalhost"
	"drover/kube/move"
	"drover/kube/node"
	"drover/kube/token"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	checkTimeout = 2 * time.Second
	checkTTL     = 10 * time.Second // how long the result of a check is cached

	// maxJoins is the number of concurrent joins of one cluster; others wait. When a
	// whole room gets power, an API server answers 32 requests at a time quickly, but
	// all of them at once too late.
	maxJoins = 32
)

// tenant is a cluster of the config with drover's loops and state for it.
type tenant struct {
	*cluster.Cluster
	ctx  context.Context // done when the config drops or changes the cluster
	stop context.CancelFunc

	joins    *semaphore.Weighted
	leases   *node.Leases
	mover    *move.Mover
	approver *approve.Approver // nil unless its loop runs
	shared   *token.Rotation   // nil unless its nodes share a token
	hosts    *externalhost.Hosts
	hosted   bool                 // drover runs its control plane, and so writes its kubeconfig
	renewer  *credentials.Renewer // nil unless its loop runs
	refresh  chan struct{}        // of capacity 1: reconcile now
	warn     sync.Once            // of an endpoint that differs from cluster-info

	checkMu  sync.Mutex // held during a check
	checked  time.Time
	checkErr error
}

// start makes a tenant and starts its loops. c.mu is held.
func (c *Clusters) start(conf pools.Cluster, hosted bool) *tenant {
	t := &tenant{
		Cluster: cluster.New(conf, conf.Kubeconfig, c.now), hosted: hosted,
		joins: semaphore.NewWeighted(maxJoins), refresh: make(chan struct{}, 1),
	}
	t.Room = c.room
	t.ctx, t.stop = context.WithCancel(c.ctx)
	log := c.log().With("cluster", conf.Name)
	lines := &lograte.Limiter{Log: log}
	t.OnRefused = func(err *cluster.RefusedError) {
		if lines.Allow(slog.LevelWarn, "answer refused") {
			log.Warn("the API server of a cluster is broken or hostile", "err", err)
		}
		if c.OnRefused != nil {
			c.OnRefused(conf.Name)
		}
	}
	t.leases = node.NewLeases(t.Cluster, c.sealKey(), c.now, c.DeadAfter, c.log())
	t.mover = &move.Mover{
		Cluster: t.Cluster, Key: c.sealKey(), Leases: t.leases, Interval: c.MoveInterval, OffAfter: c.OffAfter, Log: c.log(), Now: c.now,
		Target: func(name string) *resolve.Plan { return c.target(t, name) }, Lookup: c.lookup,
	}
	if conf.Token.Mode == pools.Shared {
		t.shared = token.NewRotation(c.minter(t), c.saved, log)
	}
	t.hosts = externalhost.New(t.Cluster, log, c.now)
	renews := c.renewed != nil && !hosted
	if renews {
		t.Renewed = func(given string) string { return c.renewed.Token(conf.Name, given) }
	}
	if c.ctx.Err() != nil {
		return t
	}
	c.running.Go(func() { c.reconcileLoop(t) })
	if c.StartLoops {
		c.running.Go(func() { t.hosts.Run(t.ctx) })
	}
	if t.UsesSecret() {
		c.running.Go(func() { t.WatchSecret(t.ctx, c.admin, log) })
	}
	if c.StartLoops && renews {
		t.renewer = &credentials.Renewer{Cluster: t.Cluster, File: conf.Kubeconfig, Store: c.renewed, Log: log, Now: c.now}
		c.running.Go(func() { t.renewer.Run(t.ctx) })
	}
	if c.StartLoops && t.shared != nil {
		c.running.Go(func() { t.shared.Run(t.ctx) })
	}
	if c.StartLoops && t.Approves() {
		t.approver = &approve.Approver{
			Cluster: t.Cluster, Key: c.sealKey(), Now: c.now, Log: log,
			Machines: c.Machines, Addresses: c.Addresses, OnRequest: c.OnRequest,
		}
		c.running.Go(func() { t.approver.Run(t.ctx) })
	}
	return t
}

// renewedFile is in the state directory: see [credentials.Store].
const renewedFile = "cluster-tokens.json"

// openRenewed opens the store of renewed tokens. c.mu is held.
func (c *Clusters) openRenewed() {
	if c.State == "" {
		return
	}
	var err error
	if c.renewed, err = credentials.Open(filepath.Join(c.State, renewedFile), c.now); err != nil {
		c.log().Warn("renewed cluster tokens are lost: using those of the kubeconfigs", "err", err)
	}
}

// lookup returns the cluster of that name in the config.
func (c *Clusters) lookup(name string) (*cluster.Cluster, error) {
	t, err := c.tenant(name)
	if err != nil {
		return nil, err
	}
	return t.Cluster, nil
}

// check returns nil if nodes can join. Checks run one at a time.
func (t *tenant) check(ctx context.Context, now func() time.Time) error {
	t.checkMu.Lock()
	defer t.checkMu.Unlock()
	if age := now().Sub(t.checked); age >= 0 && age < checkTTL {
		return t.checkErr
	}
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := t.Check(limited)
	if err == nil && t.approver != nil {
		err = t.approver.Err()
	}
	if ctx.Err() == nil { // else the caller gave up
		t.checked, t.checkErr = now(), err
	}
	return err
}
