package cluster

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drover/kube/client"
	"drover/pools"
)

// FieldManager is drover's name as the owner of fields (server-side apply).
const FieldManager = "drover"

// Cluster is a tenant's cluster and the connection to it. All methods may be
// called from several goroutines.
type Cluster struct {
	// Conf is the cluster's part of the config. It does not change.
	Conf pools.Cluster
	// OnRefused is called, if not nil, for each answer of the API server that drover
	// did not read because of its size or kind. It is called from several goroutines,
	// and must be set before the first request.
	OnRefused func(*RefusedError)
	// Room is the room for large lists that this cluster shares with others. New makes
	// one; to replace it, set it before the first request.
	Room *Room
	// MaxListed is the limit of a list that [Follow] reads, in bytes of memory; 0 means
	// 64 MiB. It must be set before the first request.
	MaxListed int
	// Renewed returns, if not nil, the token that is to be used in place of the one in a
	// kubeconfig; empty: that one. It must be set before the first request.
	Renewed func(token string) string

	path      string // of the kubeconfig, if it is in a file
	inCluster bool   // it is the cluster that drover runs in
	now       func() time.Time
	infos     singleflight.Group
	rate      *rate.Limiter       // of the memory that answers take
	events    *rate.Limiter       // of watches
	large     *semaphore.Weighted // for one large list at a time

	secretRead     chan struct{} // closed after the first attempt to read the Secret; nil without a Secret
	markSecretRead func()        // closes secretRead

	mu      sync.Mutex
	client  client.Interface     // nil while there are no credentials
	problem error                // of the newest credentials; client then has earlier ones
	stamp   string               // time and size of the file that was read last
	source  *clientcmdapi.Config // of client, if that came from a Secret

	failing    client.Interface // in place of client, made once for an error: each node asks for it
	failingWhy string           // the error

	refused   *RefusedError // of the last answer that was refused
	refusedAt time.Time
	silentAt  time.Time // when the API server did not answer
}

// New returns the cluster that conf describes. Its kubeconfig is the file at path,
// unless conf names a Secret. New reads neither.
func New(conf pools.Cluster, path string, now func() time.Time) *Cluster {
	c := &Cluster{Conf: conf, path: path, now: now, Room: NewRoom(), large: semaphore.NewWeighted(1)}
	c.rate, c.events = newRates()
	if conf.SecretRef != (pools.SecretRef{}) {
		c.secretRead = make(chan struct{})
		c.markSecretRead = sync.OnceFunc(func() { close(c.secretRead) })
	}
	return c
}

// NewAdmin returns the admin cluster, with a kubeconfig file at path. An empty
// path means the cluster that drover runs in.
func NewAdmin(path string, now func() time.Time) *Cluster {
	c := New(pools.Cluster{Name: "admin"}, path, now)
	c.inCluster = path == ""
	return c
}

// UsesSecret reports whether the credentials come from a Secret, so that
// [Cluster.WatchSecret] has to run.
func (c *Cluster) UsesSecret() bool { return c.secretRead != nil }

// Approves reports whether drover approves the certificate requests of nodes,
// rather than the cluster's own approver.
func (c *Cluster) Approves() bool { return c.Conf.Approver != pools.ByCluster }

// Client returns the client with the newest usable credentials. It sends nothing to
// the cluster. Each request of the client has a time limit of 10 seconds, except for
// watches. Without usable credentials every request fails with an [*Error].
func (c *Cluster) Client() client.Interface {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.secretRead != nil: // WatchSecret sets client
	case c.inCluster && c.client == nil:
		c.client, c.problem = c.dialInCluster()
	case c.inCluster:
	case c.path == "":
		c.problem = errors.New("none is named in the config")
	default:
		c.readFile()
	}
	if c.client != nil {
		return c.client
	}
	err := &Error{Cluster: c.Conf.Name, Doing: "connect", Hint: "its kubeconfig is not read yet", Retry: RetrySoon}
	if c.problem != nil {
		err = &Error{Cluster: c.Conf.Name, Doing: "connect", Hint: "its kubeconfig cannot be used", Err: c.problem, Retry: RetryLater}
	}
	if why := err.Error(); c.failing == nil || c.failingWhy != why {
		c.failing, c.failingWhy = failing{err}.client(), why
	}
	return c.failing
}

// failing is the transport of a cluster without credentials.
type failing struct{ err error }

func (f failing) client() client.Interface {
	conf := &rest.Config{Transport: f}
	typed, err := client.New(conf)
	if err != nil {
		panic(err) // the config is fixed, and good
	}
	return &connection{Interface: typed, dynamic: func() (dynamic.Interface, error) { return dynamic.NewForConfig(conf) }}
}

// RoundTrip implements [http.RoundTripper].
func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// Check returns nil if the cluster-info can be read, the newest credentials are in force,
// and no answer was refused within the last ten minutes.
func (c *Cluster) Check(ctx context.Context) error {
	c.AwaitSecret(ctx)
	_, err := c.Info(ctx)
	if refused := c.lastRefused(); refused != nil {
		return c.Wrap("read an answer", refused)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil || c.problem == nil {
		return nil
	}
	return &Error{Cluster: c.Conf.Name, Doing: "read its kubeconfig anew", Hint: "the one before is still in force", Err: c.problem, Retry: RetryLater}
}

// Quiet stops client-go from logging errors to standard error that it also returns.
func Quiet(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }
