package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drover/pools"
)

// cluster is a tenant's cluster and the connection to it.
type cluster struct {
	conf pools.Cluster
	path string // of the kubeconfig, if it is in a file
	home bool   // it is the one that drover runs in
	now  func() time.Time

	joins   chan struct{} // a slot for each join under way
	looks   chan struct{} // a slot for each first look at a Lease
	drains  chan struct{} // a slot for each look at the pods of a node that moves
	pulses  pulses
	tending errand
	infos   singleflight.Group
	warn    sync.Once // that its endpoint is not the one of cluster-info

	shared *rotation          // nil unless its tokens are shared, and until first needed
	stop   context.CancelFunc // ends what attends to it; nil if nothing does

	forget context.CancelFunc // ends the watch of its Secret; nil when there is none
	known  chan struct{}      // closed when the Secret was looked for; nil when there is none
	seen   func()             // closes known

	mu      sync.Mutex
	client  kubernetes.Interface // nil as long as there are no credentials
	trouble error                // what is wrong with the credentials that are there now; client has those before
	stamp   stamp                // of the file that was read last
	made    *clientcmdapi.Config // what client was made from, if that came from a Secret

	approveErrs map[string]error // what keeps the approver from its work, by signer

	checkMu  sync.Mutex // held during a check
	checked  time.Time
	checkErr error
}

// stamp tells one version of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

func newCluster(conf pools.Cluster, path string, now func() time.Time) *cluster {
	c := &cluster{
		conf: conf, path: path, now: now,
		joins: make(chan struct{}, maxJoins), looks: make(chan struct{}, maxExpected), drains: make(chan struct{}, maxDrains),
	}
	if conf.SecretRef != (pools.SecretRef{}) {
		c.known = make(chan struct{})
		c.seen = sync.OnceFunc(func() { close(c.known) })
	}
	return c
}

// enter waits for its turn to join.
func (c *cluster) enter(ctx context.Context) error {
	select {
	case c.joins <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &ClusterError{Cluster: c.conf.Name, Doing: "join", Hint: "too many nodes join at once", Err: context.Cause(ctx), Retry: retrySoon}
	}
}

func (c *cluster) leave() { <-c.joins }

func (c *cluster) ttl() time.Duration {
	if ttl := time.Duration(c.conf.Token.TTL); ttl > 0 {
		return ttl
	}
	return defaultTTL
}

// connect returns the client, made anew when the kubeconfig has changed. It
// does not talk to the cluster.
func (c *cluster) connect() (kubernetes.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known != nil: // its Secret is watched
	case c.home && c.client == nil:
		c.client, c.trouble = dialHome(c.now)
	case c.home:
	case c.path == "":
		c.trouble = errors.New("none is named in the config")
	default:
		c.refresh()
	}
	if c.client != nil {
		return c.client, nil
	}
	if c.trouble == nil {
		return nil, &ClusterError{Cluster: c.conf.Name, Doing: "connect", Hint: "its kubeconfig is not read yet", Retry: retrySoon}
	}
	return nil, &ClusterError{Cluster: c.conf.Name, Doing: "connect", Hint: "its kubeconfig is of no use", Err: c.trouble, Retry: retryLater}
}

// outdated tells what is wrong with the credentials that are there now, when
// those that were there before are still in force.
func (c *cluster) outdated() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil || c.trouble == nil {
		return nil
	}
	return &ClusterError{Cluster: c.conf.Name, Doing: "read its kubeconfig anew", Hint: "the one before is still in force", Err: c.trouble, Retry: retryLater}
}

// quiet keeps client-go from writing to standard error what it returns as an
// error anyway.
func quiet(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

// check tells whether nodes can join. One check runs at a time.
func (c *cluster) check(ctx context.Context) error {
	c.checkMu.Lock()
	defer c.checkMu.Unlock()
	if age := c.now().Sub(c.checked); age >= 0 && age < checkAge {
		return c.checkErr
	}
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c.await(limited)
	_, err := c.info(limited)
	if err == nil {
		err = c.outdated()
	}
	if err == nil {
		err = c.approving()
	}
	if ctx.Err() == nil { // else it says nothing about the cluster
		c.checked, c.checkErr = c.now(), err
	}
	return err
}
