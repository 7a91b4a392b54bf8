package kube

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"drover/kube/approve"
	"drover/kube/cluster"
	"drover/kube/credentials"
	"drover/kube/externalhost"
	"drover/kube/inspect"
	"drover/kube/token"
	"drover/pools"
	"drover/pools/resolve"
)

// Clusters is the set of the tenants' clusters. The zero value is empty; see
// [Clusters.Set]. Fields must not change once it is in use.
type Clusters struct {
	// Admin is the kubeconfig file of the cluster that has the Secrets of
	// secretRefs. Empty means the cluster that drover runs in.
	Admin string
	// Log receives events. Nil discards them.
	Log *slog.Logger
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
	// Machines finds machines by the farm in force. If it is nil, labels and taints
	// stay as they were when the node became Ready.
	Machines approve.Machines
	// OnReady is called, if not nil, when a node that joined is Ready.
	// It is called from several goroutines.
	OnReady func(p *resolve.Plan, at time.Time)
	// OnReconcile is called, if not nil, after the labels and taints of all Nodes of
	// a cluster were reconciled, with the number of Nodes that changed, and the
	// error.
	OnReconcile func(cluster string, changed int, err error)
	// OnRefused is called, if not nil, for each answer of a cluster's API server that
	// drover did not read because of its size or kind. It is called from several
	// goroutines.
	OnRefused func(cluster string)
	// Key seals the annotations and groups that drover writes into Nodes and tokens.
	// It should be durable: after its loss drover does not remove the taints that it
	// gave earlier, nor labels that a kubelet may not change. If it is empty, a
	// random key lasts until the server ends.
	Key []byte
	// DeadAfter is the time after which a kubelet whose Lease does not change is
	// dead. Zero takes the duration of the Lease: 40 seconds by default.
	DeadAfter time.Duration
	// MoveInterval is the time between two checks of a node that moves to another
	// cluster; zero is 5 seconds. OffAfter is the time after which a machine whose
	// kubelet does not renew its Lease is off; zero is 2 minutes.
	MoveInterval, OffAfter time.Duration

	// StartLoops makes Set start the approver of each cluster and the rotation of
	// its shared token.
	StartLoops bool
	// Addresses returns the addresses of a machine, IPv4 and IPv6, by its node or its
	// leases. It may be nil.
	Addresses func(pools.MAC) []netip.Addr
	// OnRequest is called, if not nil, for each certificate request that is decided
	// on or left alone. It is called from several goroutines.
	OnRequest func(approve.Request)
	// State is the directory of the file with the tokens that drover has renewed, where the
	// kubeconfig is not drover's to write. Empty: drover uses the tokens of the kubeconfigs.
	// With StartLoops drover renews its tokens.
	State string
	// Tokens stores shared tokens across restarts. Without it each start mints new
	// ones.
	Tokens token.Store

	mu      sync.Mutex
	byName  map[string]*tenant
	admin   *cluster.Cluster
	room    *cluster.Room
	joining map[string]*joining // by cluster and node
	saved   *token.Saved
	renewed *credentials.Store // nil: see State
	ctx     context.Context    // done on Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	randomKey func() []byte
}

// Set replaces the clusters. Unchanged ones keep their connections. It starts to watch
// the Secrets that the config names. It does not wait, and reads no kubeconfig file.
func (c *Clusters) Set(clusters []pools.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(cluster.Quiet(context.Background()))
		c.joining = make(map[string]*joining)
		c.saved = &token.Saved{Store: c.Tokens, Now: c.now}
		c.randomKey = sync.OnceValue(func() []byte { return []byte(rand.Text()) })
		c.room = cluster.NewRoom()
		c.admin = cluster.NewAdmin(c.Admin, c.now)
		c.openRenewed()
	}
	old := c.byName
	c.byName = make(map[string]*tenant, len(clusters))
	for _, conf := range clusters {
		hosted := conf.ControlPlane != nil
		conf.ControlPlane, conf.DeletionPolicy = nil, "" // else it does not matter how the cluster is run
		hosts := conf.Hosts
		conf.Hosts = nil // they come and go without a new connection
		t := old[conf.Name]
		if t == nil || t.hosted != hosted || !reflect.DeepEqual(t.Conf, conf) {
			t = c.start(conf, hosted)
		}
		t.hosts.Set(hosts, conf.HostNetwork)
		c.byName[conf.Name] = t
	}
	for name, t := range old {
		if c.byName[name] != t {
			t.stop()
		}
	}
}

// Close ends all goroutines that Set and Join have started, and waits for them. Tokens
// stay valid until they expire, so nodes that have one can still join.
func (c *Clusters) Close() {
	c.mu.Lock()
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// Check reads the cluster-info of all clusters, concurrently. It returns an error by
// cluster name, nil for clusters that nodes can join. Results are cached for ten
// seconds.
func (c *Clusters) Check(ctx context.Context) map[string]error {
	result := make(map[string]error)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, t := range c.tenants() {
		wg.Go(func() {
			err := t.check(ctx, c.now)
			mu.Lock()
			defer mu.Unlock()
			result[t.Conf.Name] = err
		})
	}
	wg.Wait()
	return result
}

// Expiries returns when drover's credentials for the clusters end, by name. It leaves out
// those whose end it does not know.
func (c *Clusters) Expiries() map[string]time.Time {
	ends := make(map[string]time.Time)
	for _, t := range c.tenants() {
		if end := cluster.Expiry(t.Client()); !end.IsZero() {
			ends[t.Conf.Name] = end
		}
	}
	return ends
}

// Renewals returns the clusters whose token drover renews, by name, with the error of the last
// try.
func (c *Clusters) Renewals() map[string]error {
	all := make(map[string]error)
	for _, t := range c.tenants() {
		if t.renewer == nil {
			continue
		}
		if renews, err := t.renewer.Status(); renews {
			all[t.Conf.Name] = err
		}
	}
	return all
}

// Inspect checks a cluster for everything that a join needs, also of the named nodes. It takes
// about 12 seconds.
// Faults of the cluster are findings; the error is for a name that is not in the
// config.
func (c *Clusters) Inspect(ctx context.Context, name string, nodes ...string) ([]inspect.Finding, error) {
	t, err := c.tenant(name)
	if err != nil {
		return nil, err
	}
	return inspect.Cluster(cluster.Quiet(ctx), c.minter(t), nodes), nil
}

// Hosts returns the hosts outside of a cluster.
func (c *Clusters) Hosts(name string) (*externalhost.Hosts, error) {
	t, err := c.tenant(name)
	if err != nil {
		return nil, err
	}
	return t.hosts, nil
}

// Moves returns the nodes that move out of a cluster, sorted by name.
func (c *Clusters) Moves() []pools.Move {
	all := []pools.Move{}
	for _, t := range c.tenants() {
		all = append(all, t.mover.Moves()...)
	}
	slices.SortFunc(all, func(a, b pools.Move) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.From, b.From))
	})
	return all
}

// Drain cordons the Node of a machine and evicts its pods, as [move.Mover.Drain]. A machine
// that belongs to no cluster needs no drain.
func (c *Clusters) Drain(ctx context.Context, name string, limit time.Duration, progress func(string)) (done func(switched bool), err error) {
	p := c.Machines.Named(name)
	if p == nil || p.Cluster == "" {
		return func(bool) {}, nil
	}
	t, err := c.tenant(p.Cluster)
	if err != nil {
		return nil, err
	}
	return t.mover.Drain(cluster.Quiet(ctx), p.Node, limit, progress)
}

// SharedToken returns the current shared join token of a cluster, for machines that
// cannot request a token of their own.
func (c *Clusters) SharedToken(ctx context.Context, name string) (pools.JoinToken, error) {
	t, err := c.tenant(name)
	if err != nil {
		return pools.JoinToken{}, fmt.Errorf("%w: %w", pools.ErrNoCluster, err)
	}
	if t.shared == nil {
		return pools.JoinToken{}, fmt.Errorf("cluster %q: %w", name, pools.ErrNotShared)
	}
	ctx, cancel := context.WithTimeout(cluster.Quiet(ctx), joinTimeout)
	defer cancel()
	tok, info, err := t.shared.Current(ctx, c.minter(t))
	if err != nil {
		return pools.JoinToken{}, err
	}
	return pools.JoinToken{
		Cluster: name, Token: tok.Full(), Expires: tok.Expires, Endpoint: cmp.Or(t.Conf.Endpoint, info.Endpoint), CACertHashes: info.Hashes,
	}, nil
}

func (c *Clusters) tenants() []*tenant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.byName))
}

func (c *Clusters) tenant(name string) (*tenant, error) {
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

// spawn runs f in a goroutine that Close waits for. After Close it runs nothing and
// returns false.
func (c *Clusters) spawn(ctx context.Context, f func(ctx context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.running.Go(func() { f(ctx) })
	return true
}

func (c *Clusters) minter(t *tenant) token.Minter {
	return token.Minter{Cluster: t.Cluster, Key: c.sealKey(), Now: c.now}
}

// sealKey returns Key, or a random key that lasts until the server ends.
func (c *Clusters) sealKey() []byte {
	if len(c.Key) > 0 {
		return c.Key
	}
	return c.randomKey()
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
