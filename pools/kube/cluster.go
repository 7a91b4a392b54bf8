package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"golang.org/x/sync/singleflight"

	"drover/pools"
)

// A kubeconfig is a few kilobytes.
const maxKubeconfig = 1 << 20

// Requests per second to one API server. A join, from its start to Ready, is
// about ten of them.
const (
	requestRate  = 200
	requestBurst = 1000
)

// cluster is a tenant's cluster and the connection to it.
type cluster struct {
	conf pools.Cluster
	path string // of the kubeconfig
	now  func() time.Time

	joins   chan struct{} // a slot for each join under way
	looks   chan struct{} // a slot for each first look at a Lease
	pulses  pulses
	tending errand
	infos   singleflight.Group
	warn    sync.Once // that its endpoint is not the one of cluster-info

	mu     sync.Mutex
	client kubernetes.Interface // nil until first needed
	stamp  stamp                // of the kubeconfig that client was made from

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
	return &cluster{conf: conf, path: path, now: now, joins: make(chan struct{}, maxJoins), looks: make(chan struct{}, maxExpected)}
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
	client, err := c.load()
	if err != nil {
		return nil, &ClusterError{Cluster: c.conf.Name, Doing: "connect", Hint: "its kubeconfig is of no use", Err: err, Retry: retryLater}
	}
	return client, nil
}

func (c *cluster) load() (kubernetes.Interface, error) {
	if c.path == "" {
		return nil, errors.New("none is named in the config")
	}
	info, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	if now := (stamp{info.ModTime(), info.Size()}); c.client == nil || now != c.stamp {
		if info.Size() > maxKubeconfig {
			return nil, fmt.Errorf("%s: larger than %d bytes", c.path, maxKubeconfig)
		}
		client, err := dial(c.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.path, err)
		}
		c.client, c.stamp = client, now
	}
	return c.client, nil
}

// dial makes a client from a kubeconfig file alone: an empty one does not make
// it fall back to the environment or to the cluster that it runs in.
func dial(path string) (kubernetes.Interface, error) {
	file, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, err
	}
	conf, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	conf.UserAgent = "drover"
	conf.QPS, conf.Burst = requestRate, requestBurst
	conf.WarningHandler = rest.NoWarnings{}
	// No conf.Timeout: it would end watches. Each request has a context.
	conf.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext
	return kubernetes.NewForConfig(conf)
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
	_, err := c.info(limited)
	if ctx.Err() == nil { // else it says nothing about the cluster
		c.checked, c.checkErr = c.now(), err
	}
	return err
}
