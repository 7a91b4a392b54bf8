package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"drover/pools/kube/cluster"
	"drover/pools/wait"
)

// A kubelet renews the Lease of its Node in kube-node-lease all the time, four
// times in the Lease's duration, which is 40 seconds unless the kubelet's config
// says otherwise. A Lease that does not change for longer than that belongs to a
// kubelet that is dead, or cut off from its cluster.
const (
	leaseDuration = 40 * time.Second
	longestWait   = 15 * time.Second // for a Lease; the node asks again later instead of waiting longer

	maxReads    = 512       // first reads under way, in one cluster
	maxWatched  = 4096      // nodes whose Leases are watched, in one cluster
	watchedTime = time.Hour // longer than any boot takes
)

// Lease is the Lease of a node's kubelet at one time. Only versions are compared: the
// clocks of the kubelet, which dates its renewals, and of this server need not
// agree.
type Lease struct {
	Version string        // empty: there is no Lease
	At      time.Time     // of the request
	Renewal time.Duration // how long it must not change for its kubelet to be dead
}

// Leases watches the Leases of nodes that boot: it remembers how they were at the
// begin of the boot, and compares.
type Leases struct {
	c     *cluster.Cluster
	now   func() time.Time
	dead  time.Duration // instead of what the Lease says; 0 otherwise
	log   *slog.Logger
	first *cache.LRUExpireCache // by node
	reads chan struct{}         // a slot for each first read
}

// NewLeases returns the lease watch of a cluster. Dead is how long a Lease must not
// change for its kubelet to be dead; 0 takes that from the Lease.
func NewLeases(c *cluster.Cluster, now func() time.Time, dead time.Duration, log *slog.Logger) *Leases {
	return &Leases{c: c, now: now, dead: dead, log: log, first: cache.NewLRUExpireCache(maxWatched), reads: make(chan struct{}, maxReads)}
}

// Start notes the Lease of a node that boots now, in the background. What passes
// until [Leases.RemoveStale] need not be waited for then. Spawn runs a function in a
// goroutine of its own, or returns false.
func (l *Leases) Start(node string, spawn func(func(context.Context)) bool) {
	select {
	case l.reads <- struct{}{}:
	default:
		return // RemoveStale reads it first, then
	}
	read := func(ctx context.Context) {
		defer func() { <-l.reads }()
		if _, err := l.begin(ctx, node); err != nil {
			l.log.Debug("the Lease of a node that boots is not seen", "node", node, "cluster", l.c.Conf.Name, "err", err)
		}
	}
	if !spawn(read) {
		<-l.reads
	}
}

// Watched reports whether the Lease of a node was read since its boot began.
func (l *Leases) Watched(node string) bool {
	_, ok := l.first.Get(node)
	return ok
}

// Stop forgets the Lease of a node: its boot has joined.
func (l *Leases) Stop(node string) { l.first.Remove(node) }

func (l *Leases) begin(ctx context.Context, node string) (Lease, error) {
	first, err := l.Read(ctx, node)
	if err == nil {
		l.first.Add(node, first, watchedTime)
	}
	return first, err
}

// Read reads the Lease of a node's kubelet.
func (l *Leases) Read(ctx context.Context, node string) (Lease, error) {
	client, err := l.c.Connect()
	if err != nil {
		return Lease{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	read := Lease{At: l.now()}
	duration := leaseDuration
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // a living kubelet would make it
	case err != nil:
		return Lease{}, l.c.Wrap("look at the Lease of the Node's kubelet", err)
	default:
		read.Version = lease.ResourceVersion
		if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
			duration = time.Duration(*s) * time.Second
		}
	}
	if read.Renewal = l.dead; l.dead == 0 {
		read.Renewal = renewal(duration)
	}
	return read, nil
}

// renewal returns how long a Lease can stay unchanged although its kubelet lives: a
// quarter of its duration, to which the kubelet adds up to 4 percent, and the time
// of the request.
func renewal(duration time.Duration) time.Duration {
	return duration/4 + duration/80 + 500*time.Millisecond
}

// awaitDead makes sure that no kubelet of that name lives, and waits for that as
// long as necessary. The error is a [*cluster.Error] when a kubelet does live; it
// wraps the API server's refusal when drover may not see Leases.
func (l *Leases) awaitDead(ctx context.Context, node string) error {
	var first Lease
	var err error
	if noted, ok := l.first.Get(node); ok {
		first = noted.(Lease)
	} else if first, err = l.begin(ctx, node); err != nil {
		return err
	}
	const doing = "let the node in"
	delay := first.Renewal - l.now().Sub(first.At)
	switch {
	case delay > longestWait:
		return &cluster.Error{Cluster: l.c.Conf.Name, Doing: doing, Retry: delay,
			Hint: fmt.Sprintf("it has a Node %q, and it takes %s to see whether a kubelet of that name lives", node, first.Renewal)}
	case wait.Sleep(ctx, delay) != nil:
		return l.c.Wrap("look at the Lease of the Node's kubelet", context.Cause(ctx))
	}
	second, err := l.Read(ctx, node)
	if err != nil || second.Version == first.Version {
		return err
	}
	l.first.Add(node, second, watchedTime)
	return &cluster.Error{Cluster: l.c.Conf.Name, Doing: doing, Retry: cluster.RetryLater,
		Hint: fmt.Sprintf("a machine that calls itself %s still runs there: its kubelet renewed its Lease within the last %s; is a MAC or a name used twice?",
			node, l.now().Sub(first.At).Round(time.Second))}
}
