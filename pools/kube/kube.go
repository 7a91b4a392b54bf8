package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"drover/pools"
)

const (
	joinTimeout  = 20 * time.Second // for what Join does once its name is free
	callTimeout  = 10 * time.Second // for one request
	dialTimeout  = 5 * time.Second
	checkTimeout = 2 * time.Second
	checkAge     = 10 * time.Second // how long a check is good for

	defaultTTL = 10 * time.Minute
	maxFollow  = 4096 // nodes on their way to Ready, in all clusters

	// maxJoins is how many joins one cluster works on; others wait. When a
	// whole room gets power, an API server answers 32 at a time soon, but all
	// at once too late.
	maxJoins = 32
)

// Clusters are the tenants that nodes join. The zero value has none; see
// [Clusters.Set]. Fields must not change once it is in use.
type Clusters struct {
	// Dir is what relative kubeconfig paths are relative to.
	Dir string
	// Admin is the kubeconfig file of the cluster that secretRefs are looked up
	// in. Empty is the cluster that drover runs in.
	Admin string
	// Log gets what happens. Nil discards it.
	Log *slog.Logger
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
	// OnReady is told, if not nil, when a node that asked for its join is
	// Ready. It is called from several goroutines.
	OnReady func(p *pools.Plan, at time.Time)
	// PlanOf returns the Plan of the node of that name as the farm is now, or
	// nil. It is called from several goroutines. If it is nil, labels and
	// taints stay as they were when the node got Ready.
	PlanOf func(node string) *pools.Plan
	// HeirOf returns the Plan of the machine that was once the node of that name
	// and is called otherwise now, or nil: unknown hardware that was given a name.
	// Nil: there are none.
	HeirOf func(node string) *pools.Plan
	// OnTend is told, if not nil, of each look at the labels and taints of all
	// Nodes of a cluster: how many were to change, and what went wrong.
	OnTend func(cluster string, changed int, err error)
	// Key proves that what is noted on a Node was noted by drover. It should
	// last: without it, or after it was lost, drover takes no taint away that it
	// gave before it was started, and no label that a kubelet may not touch.
	Key []byte
	// Watch is how long a Lease must not change for its kubelet to be dead.
	// Zero is what kubelets go by: 11 seconds, if their config says nothing
	// else.
	Watch time.Duration
	// Pace is how often a node that moves to another cluster is looked at, and
	// Gone how long its kubelet is silent when its machine is off. Zero is 5
	// seconds, and 2 minutes.
	Pace, Gone time.Duration

	// Attend has Set start what has to run all the time for a cluster: its
	// approver and the rotation of its shared token.
	Attend bool
	// Expected tells whether the node of that name boots now; others get no
	// certificate by a shared token. Nil: any node of the farm may boot.
	Expected func(node string) bool
	// AddressOf returns the address that a machine leases, for nodes whose Plan
	// has none. It may be nil.
	AddressOf func(pools.MAC) (netip.Addr, bool)
	// OnRequest is told, if not nil, of each certificate request that drover came
	// across. It is called from several goroutines.
	OnRequest func(Request)
	// Tokens keeps shared tokens over a restart. Without it each start makes
	// others.
	Tokens TokenStore

	mu       sync.Mutex
	byName   map[string]*cluster
	admin    *cluster
	moves    map[string]*move     // by cluster and node
	followed map[string]*followed // by cluster and node
	ctx      context.Context      // done on Close
	cancel   context.CancelFunc
	running  sync.WaitGroup

	randomKey func() []byte

	sharedMu     sync.Mutex
	sharedTokens map[string][]sharedToken // by cluster; nil until they are loaded
}

// Set makes clusters the ones in force. Those that did not change keep their
// connections. It waits for nothing and reads no kubeconfig, but begins to watch
// the Secrets that are named.
func (c *Clusters) Set(clusters []pools.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(quiet(context.Background()))
		c.followed, c.moves = make(map[string]*followed), make(map[string]*move)
		c.randomKey = sync.OnceValue(func() []byte { return []byte(rand.Text()) })
		c.admin = newCluster(pools.Cluster{Name: "admin"}, c.path(c.Admin), c.now)
		c.admin.home = c.Admin == ""
	}
	old := c.byName
	c.byName = make(map[string]*cluster, len(clusters))
	for _, conf := range clusters {
		if have := old[conf.Name]; have != nil && have.conf == conf {
			c.byName[conf.Name] = have
			continue
		}
		cl := newCluster(conf, c.path(conf.Kubeconfig), c.now)
		c.byName[conf.Name] = cl
		if cl.known != nil && c.ctx.Err() == nil {
			ctx, cancel := context.WithCancel(c.ctx)
			cl.forget = cancel
			c.running.Go(func() { c.watchSecret(ctx, cl, c.admin) })
		}
	}
	for name, cl := range old {
		if c.byName[name] != cl && cl.forget != nil {
			cl.forget()
		}
	}
	c.attendAll(old)
}

func (c *Clusters) path(file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(c.Dir, file)
}

// Close ends everything that Join has started, and waits for it. Tokens that
// were handed out stay valid until they expire: nodes that boot need the server
// no more.
func (c *Clusters) Close() {
	c.mu.Lock()
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// Join mints a token for the node of p, which has the address addr, and returns
// what it joins its cluster with. A token that the node got before is taken
// back. An error of type [*ClusterError] passes when the cluster gets well.
//
// The boot ID is that of the node's kernel. A Node of another boot is deleted
// first, once the Lease of its kubelet was seen not to change for 11 seconds;
// [Clusters.Expect] begins to watch. As long as a kubelet of that name lives,
// nobody gets a token for it.
func (c *Clusters) Join(ctx context.Context, p *pools.Plan, addr netip.Addr, bootID string) (pools.JoinConfig, error) {
	cl, err := c.cluster(p.Cluster)
	if err != nil {
		return pools.JoinConfig{}, fmt.Errorf("node %q: %w", p.Node, err)
	}
	reg, err := register(p, addr)
	if err != nil {
		return pools.JoinConfig{}, fmt.Errorf("node %q: %w", p.Node, err)
	}
	ctx = quiet(ctx)
	cl.awaitJoin(ctx)
	before, err := c.vacate(ctx, cl, p, bootID)
	if err != nil {
		return pools.JoinConfig{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if err := cl.enter(ctx); err != nil {
		return pools.JoinConfig{}, err
	}
	defer cl.leave()
	tok, given, info, err := c.tokenFor(ctx, cl, p.Node)
	if err != nil {
		return pools.JoinConfig{}, err
	}
	if e := cl.conf.Endpoint; e != "" && e != info.endpoint {
		cl.warn.Do(func() {
			c.log().Warn("nodes find the cluster at its configured endpoint, but kubelets dial the one of cluster-info, so it must be reachable too",
				"cluster", p.Cluster, "endpoint", e, "cluster-info", info.endpoint)
		})
	}
	text, err := reg.render(given, info, cl.conf.Endpoint)
	if err != nil {
		c.revoke(cl, tok)
		return pools.JoinConfig{}, fmt.Errorf("node %q: %w", p.Node, redact(err, given.secret))
	}
	cl.pulses.drop(p.Node)
	c.follow(cl, &followed{plan: p, given: reg.note(), bootID: bootID, before: before, tok: tok})
	c.log().Info("join token given", "node", p.Node, "cluster", p.Cluster, "address", addr, "token", given.id, "shared", tok.id == "")
	return pools.JoinConfig{Kubeadm: text}, nil
}

// tokenFor returns a token of the node's own, or the one that all nodes of its
// cluster share: then tok is zero, and not for this boot to take back.
func (c *Clusters) tokenFor(ctx context.Context, cl *cluster, node string) (tok, given token, info *clusterInfo, err error) {
	if cl.conf.Token.Mode == pools.Shared {
		shared, info, err := c.sharedJoin(ctx, cl)
		return token{}, shared.token(), info, err
	}
	if tok, info, err = cl.mintSigned(ctx, c.sealKey(), node, cl.ttl()); err != nil {
		c.revoke(cl, tok)
	}
	return tok, tok, info, err
}

// Check asks every cluster for its cluster-info, all at once, and returns what
// is wrong with each; nil for those that nodes can join. An answer is good for
// ten seconds.
func (c *Clusters) Check(ctx context.Context) map[string]error {
	c.mu.Lock()
	all := make([]*cluster, 0, len(c.byName))
	for _, cl := range c.byName {
		all = append(all, cl)
	}
	c.mu.Unlock()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, cl := range all {
		wg.Go(func() { errs[i] = cl.check(ctx) })
	}
	wg.Wait()
	result := make(map[string]error, len(all))
	for i, cl := range all {
		result[cl.conf.Name] = errs[i]
	}
	return result
}

func (c *Clusters) cluster(name string) (*cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case name == "":
		return nil, errors.New("its pool names no cluster")
	case c.ctx != nil && c.ctx.Err() != nil:
		return nil, errors.New("the server stops")
	case c.byName[name] == nil:
		return nil, fmt.Errorf("no cluster %q in the config", name)
	}
	return c.byName[name], nil
}

// spawn runs f in a goroutine that Close ends and waits for. It returns false
// after Close.
func (c *Clusters) spawn(f func(ctx context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.running.Go(func() { f(c.ctx) })
	return true
}

// sealKey is Key, or one that is good until the server ends.
func (c *Clusters) sealKey() []byte {
	if len(c.Key) > 0 {
		return c.Key
	}
	return c.randomKey()
}

// revoke takes a token back, if there is one. It need not succeed: tokens
// expire.
func (c *Clusters) revoke(cl *cluster, tok token) {
	if tok.id == "" {
		return
	}
	c.spawn(func(ctx context.Context) {
		if err := cl.unmint(ctx, tok); err != nil {
			c.log().Debug("join token stays until it expires", "token", tok.id, "err", err)
		}
	})
}

func (c *Clusters) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c *Clusters) log() *slog.Logger {
	if c.Log != nil {
		return c.Log
	}
	return slog.New(slog.DiscardHandler)
}
