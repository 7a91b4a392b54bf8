package tenants

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"drover/internal/lograte"
	"drover/kube/cluster"
	"drover/pools"
)

// manager is the owner of the fields that drover writes.
const manager = cluster.FieldManager

// leaseName is the Lease of the leader.
const leaseName = "drover-tenants"

// The times of the leader's Lease: another server leads at most leaseDuration and twice
// leaseRetry after the end of this one.
const (
	leaseDuration = 15 * time.Second
	leaseRenew    = 10 * time.Second
	leaseRetry    = 2 * time.Second
)

const (
	roundTimeout = 2 * time.Minute
	quickRound   = time.Second      // while a tenant is not as it should be
	slowRound    = 30 * time.Second // else
	startTimeout = time.Minute      // how long a start holds up the next
)

// Controller keeps the control planes of tenants as the farm declares them. Fields must
// not change after Run.
type Controller struct {
	// Admin returns the connection to the admin cluster: the same one as long as its
	// credentials are. It is called again and again.
	Admin func() (*rest.Config, error)
	// Namespace has all objects of all tenants.
	Namespace string
	// Identity names this server among others.
	Identity string
	// RBAC returns the manifest with drover's rights in a tenant.
	RBAC func(pools.Cluster) []byte
	// Generation returns that of a tenant's object in force, for its conditions; 0 without an
	// object. It is called in Set. Nil is for a farm without objects.
	Generation func(tenant string) int64
	// Refused reports whether the newest spec of a tenant's object is refused, so that an
	// earlier one is in force: Ready says so then, and is not written here. It is called from
	// several goroutines. Nil is for a farm without objects.
	Refused func(tenant string) bool
	// OnStatus is called, if not nil, with the status of a tenant after each round. It is
	// called from several goroutines, on the leader only.
	OnStatus func(tenant string, s Status)
	// Log receives events. Nil discards them.
	Log *slog.Logger
	// Now is the clock. Nil is time.Now.
	Now func() time.Time

	mu        sync.Mutex
	tenants   map[string]declared             // nil before the first Set
	elsewhere map[string]pools.Cluster        // those without a control plane
	policies  map[string]pools.DeletionPolicy // of all tenants that were there, as declared last
	status    map[string]Status
	problem   error
	changed   chan struct{} // of capacity 1

	numbers sync.Mutex    // held while a VNI is chosen
	starts  chan struct{} // of capacity 1: full while a control plane starts

	limits  *cluster.Cluster // of the answers of the admin cluster
	clients atomic.Pointer[clients]
	lines   *lograte.Limiter
}

// Set replaces the clusters of the farm. Those without a controlPlane are left alone.
// A tenant that is no longer among those with one, and has no object with one in the admin
// cluster either, is removed as its deletionPolicy says.
func (c *Controller) Set(clusters []pools.Cluster) {
	tenants, elsewhere := map[string]declared{}, map[string]pools.Cluster{}
	for _, conf := range clusters {
		if conf.ControlPlane == nil {
			elsewhere[conf.Name] = conf
			continue
		}
		d := declared{conf: conf}
		if c.Generation != nil {
			d.generation = c.Generation(conf.Name)
		}
		tenants[conf.Name] = d
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.init()
	for name, d := range tenants {
		c.policies[name] = d.conf.DeletionPolicy
	}
	if c.tenants != nil && reflect.DeepEqual(tenants, c.tenants) && reflect.DeepEqual(elsewhere, c.elsewhere) {
		return
	}
	c.tenants, c.elsewhere = tenants, elsewhere
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// declared is a tenant of the farm.
type declared struct {
	conf       pools.Cluster
	generation int64 // of its object; 0: it has none
}

// init makes what the zero value lacks. c.mu is held.
func (c *Controller) init() {
	if c.changed == nil {
		c.changed, c.starts = make(chan struct{}, 1), make(chan struct{}, 1)
		c.status, c.policies = map[string]Status{}, map[string]pools.DeletionPolicy{}
		c.lines = &lograte.Limiter{Log: c.log()}
	}
}

// Statuses returns the status of each tenant by its name, as this server knows it: of the
// leader only.
func (c *Controller) Statuses() map[string]Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.status)
}

// Run keeps the control planes while this server is the leader, until ctx is done. An
// error is one of the configuration; other errors are in the status and the log.
func (c *Controller) Run(ctx context.Context) error {
	ctx = cluster.Quiet(ctx)
	c.mu.Lock()
	c.init()
	c.mu.Unlock()
	if err := c.connect(ctx); err != nil {
		return nil // ctx is done
	}
	return c.elector().Run(ctx)
}

// lead runs a worker for each tenant until ctx is done.
func (c *Controller) lead(ctx context.Context) {
	c.log().Info("reconciling tenant control planes")
	workers := map[string]*worker{}
	defer func() {
		for _, w := range workers {
			w.end()
		}
		c.log().Info("stopped reconciling tenant control planes")
	}()
	c.mu.Lock()
	clear(c.status) // others may have led since
	c.mu.Unlock()
	var failing pause
	for {
		again := quickRound
		c.mu.Lock()
		tenants := c.tenants
		c.mu.Unlock()
		if tenants != nil {
			c.update(ctx, workers, tenants)
			again = slowRound
			switch err := c.removeOthers(ctx); {
			case err == nil:
				failing = pause{}
			case ctx.Err() == nil:
				if c.lines.Allow(slog.LevelWarn, "removal") {
					c.log().Warn("control planes of removed tenants not deleted", "err", err)
				}
				again = failing.next(c.now(), "removal", quickRound)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
			failing = pause{}
		case <-time.After(again):
		}
	}
}

// update starts, restarts and ends workers.
func (c *Controller) update(ctx context.Context, workers map[string]*worker, tenants map[string]declared) {
	for name, w := range workers {
		if d, ok := tenants[name]; !ok || !reflect.DeepEqual(d, w.declared) {
			w.end()
			delete(workers, name)
			if !ok {
				c.mu.Lock()
				delete(c.status, name)
				c.mu.Unlock()
			}
		}
	}
	for name, d := range tenants {
		if workers[name] == nil {
			workers[name] = c.start(ctx, d)
		}
	}
}

// report keeps the status of a tenant.
func (c *Controller) report(name string, s Status) {
	s.Conditions = slices.Clone(s.Conditions) // the worker changes its own
	c.mu.Lock()
	c.status[name] = s
	c.mu.Unlock()
	if c.OnStatus != nil {
		c.OnStatus(name, s)
	}
}

func (c *Controller) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c *Controller) log() *slog.Logger {
	if c.Log != nil {
		return c.Log
	}
	return slog.New(slog.DiscardHandler)
}

// start starts the worker of a tenant.
func (c *Controller) start(ctx context.Context, d declared) *worker {
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{controller: c, declared: d, log: c.log().With("cluster", d.conf.Name), cancel: cancel, done: make(chan struct{})}
	c.mu.Lock()
	w.status, w.recalled = c.status[d.conf.Name]
	w.status.Conditions = slices.Clone(w.status.Conditions)
	c.mu.Unlock()
	go func() {
		defer close(w.done)
		defer w.started()
		w.run(ctx)
	}()
	return w
}

// run does rounds until ctx is done.
func (w *worker) run(ctx context.Context) {
	problem := ""
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeoutCause(ctx, roundTimeout, fmt.Errorf("not done after %s", roundTimeout))
		again, err := w.round(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil && err.Error() != problem {
			w.log.Warn("reconciling control plane failed", "err", err)
		}
		problem = ""
		if err != nil {
			problem = err.Error()
		}
		var turn chan<- struct{} // nil: it does not wait for one
		if w.queued {
			turn = w.controller.starts
		}
		select {
		case <-ctx.Done():
		case turn <- struct{}{}:
			w.hold()
		case <-time.After(again):
		}
	}
}

// end ends the worker and waits for it.
func (w *worker) end() {
	w.cancel()
	<-w.done
}
