package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"drover/internal/wait"
	"drover/kube/cluster"
)

// A kubelet renews the Lease of its Node in kube-node-lease four times in the Lease's
// duration, which is 40 seconds unless the kubelet's config sets another. A single late
// renewal means nothing: it may take 10 seconds on its way, and the next one comes after
// another interval. The kubelet of a Lease that does not change for its whole duration
// has missed three renewals at least: it is dead, or cut off from its cluster.
const (
	leaseDuration = 40 * time.Second
	minDuration   = 10 * time.Second // of Leases that say less
	maxDuration   = time.Hour        // of Leases that say more: a kubelet writes its own Lease

	longestWait = 25 * time.Second // for a Lease; if it takes longer, the node has to try again

	maxReads   = 512       // first reads under way, in one cluster
	maxWatched = 4096      // nodes whose Leases are watched, in one cluster
	watchTTL   = time.Hour // longer than any boot takes
	maxVersion = 128       // bytes of a Lease's version; etcd's have 20
)

// Lease is the Lease of a node's kubelet at one time. Only versions are compared, since
// the clock of the kubelet, which dates its renewals, may differ from this server's.
type Lease struct {
	Version  string        // empty: there is no Lease
	At       time.Time     // of the request
	Duration time.Duration // the kubelet is dead if the Lease stays unchanged for that long
}

// Leases watches the Leases of nodes that boot: it compares the Lease at the begin of
// the boot with that at the join.
type Leases struct {
	c     *cluster.Cluster
	now   func() time.Time
	key   []byte        // seals what drover writes to Nodes
	dead  time.Duration // replaces Lease.Duration unless it is 0
	log   *slog.Logger
	first *cache.LRUExpireCache // by node
	reads *semaphore.Weighted   // first reads
}

// NewLeases returns the lease watch of a cluster. key seals what drover writes to its Nodes. dead is the time after which a kubelet
// whose Lease does not change is dead; 0 takes the duration of the Lease.
func NewLeases(c *cluster.Cluster, key []byte, now func() time.Time, dead time.Duration, log *slog.Logger) *Leases {
	return &Leases{c: c, key: key, now: now, dead: dead, log: log, first: cache.NewLRUExpireCache(maxWatched), reads: semaphore.NewWeighted(maxReads)}
}

// Start reads the Lease of a node that boots now, in the background. The time between
// the first Start of a boot and [Leases.RemoveStale] shortens the wait of the latter.
// spawn runs a function in a goroutine, or returns false.
func (l *Leases) Start(node string, spawn func(func(context.Context)) bool) {
	if !l.reads.TryAcquire(1) {
		return // RemoveStale will read it
	}
	read := func(ctx context.Context) {
		defer l.reads.Release(1)
		if _, err := l.begin(ctx, node); err != nil {
			l.log.Debug("cannot read the Lease of a booting node", "node", node, "cluster", l.c.Conf.Name, "err", err)
		}
	}
	if !spawn(read) {
		l.reads.Release(1)
	}
}

// Watched reports whether the Lease of a node has been read in this boot.
func (l *Leases) Watched(node string) bool {
	_, ok := l.first.Get(node)
	return ok
}

// Stop forgets the Lease of a node that has joined.
func (l *Leases) Stop(node string) { l.first.Remove(node) }

// begin reads the Lease of a node, and remembers since when it has not changed.
func (l *Leases) begin(ctx context.Context, node string) (Lease, error) {
	read, err := l.Read(ctx, node)
	if err != nil {
		return Lease{}, err
	}
	if earlier, ok := l.first.Get(node); ok && earlier.(Lease).Version == read.Version {
		read.At = earlier.(Lease).At
	}
	l.first.Add(node, read, watchTTL)
	return read, nil
}

// Read reads the Lease of a node's kubelet.
func (l *Leases) Read(ctx context.Context, node string) (Lease, error) {
	read := Lease{At: l.now()}
	duration := leaseDuration
	lease, err := l.c.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // a living kubelet would make it
	case err != nil:
		return Lease{}, l.c.Wrap("read the Lease of the Node's kubelet", err)
	default:
		if read.Version = lease.ResourceVersion; len(read.Version) > maxVersion {
			return Lease{}, l.c.Wrap("read the Lease of the Node's kubelet", fmt.Errorf("its resourceVersion has %d bytes", len(read.Version)))
		}
		if s := lease.Spec.LeaseDurationSeconds; s != nil {
			duration = time.Duration(*s) * time.Second
		}
	}
	if read.Duration = l.dead; l.dead == 0 {
		read.Duration = min(max(duration, minDuration), maxDuration)
	}
	return read, nil
}

// Unchanged returns the time for which a Lease that was read now has not changed since
// it was read before. Times at which the API server did not answer do not count: no
// kubelet could renew its Lease then.
func (l *Leases) Unchanged(before Lease) time.Duration {
	since := before.At
	if silent := l.c.LastSilent(); silent.After(since) {
		since = silent
	}
	return l.now().Sub(since)
}

// awaitDead returns nil once it is certain that no kubelet of that name lives. The error
// is a [*cluster.Error] if a kubelet lives, or if the wait would be too long. It wraps
// the API server's Forbidden if drover may not read Leases.
func (l *Leases) awaitDead(ctx context.Context, node string) error {
	var first Lease
	var err error
	if cached, ok := l.first.Get(node); ok {
		first = cached.(Lease)
	} else if first, err = l.begin(ctx, node); err != nil {
		return err
	}
	const doing = "let the node in"
	silent := l.c.LastSilent()
	delay := first.Duration - l.Unchanged(first)
	switch {
	case delay > longestWait:
		return &cluster.Error{Cluster: l.c.Conf.Name, Doing: doing, Retry: delay,
			Hint: fmt.Sprintf("it has a Node %q, and it takes %s to see whether a kubelet of that name lives", node, first.Duration)}
	case wait.Sleep(ctx, delay) != nil:
		return l.c.Wrap("read the Lease of the Node's kubelet", context.Cause(ctx))
	}
	second, err := l.Read(ctx, node)
	switch {
	case err != nil:
		return err
	case !l.c.LastSilent().Equal(silent):
		return &cluster.Error{Cluster: l.c.Conf.Name, Doing: doing, Retry: cluster.RetrySoon,
			Hint: fmt.Sprintf("it has a Node %q, and its API server did not answer while drover watched for its kubelet", node)}
	}
	return l.compare(node, first, second)
}

// compare returns an error if the kubelet whose Lease was read twice has renewed it.
func (l *Leases) compare(node string, first, second Lease) error {
	if second.Version == first.Version {
		return nil
	}
	l.first.Add(node, second, watchTTL)
	return &cluster.Error{Cluster: l.c.Conf.Name, Doing: "let the node in", Retry: cluster.RetryLater,
		Hint: fmt.Sprintf("a machine that calls itself %s still runs there: its kubelet renewed its Lease within the last %s; is a MAC or a name used twice?",
			node, l.now().Sub(first.At).Round(time.Second))}
}

// Living returns an error if a kubelet of that name lives: it has renewed its Lease since the boot
// began. While that is not certain, it returns after which time to ask again. It does not wait.
//
// Where the Lease cannot be read, nobody can tell: then it returns neither.
func (l *Leases) Living(ctx context.Context, node string) (again time.Duration, err error) {
	unknown := func(err error) (time.Duration, error) {
		if ctx.Err() != nil { // it may answer the next time
			return cluster.RetrySoon, nil
		}
		l.log.Debug("cannot tell whether the kubelet of a booting node is alive", "node", node, "cluster", l.c.Conf.Name, "err", err)
		return 0, nil
	}
	var first Lease
	if cached, ok := l.first.Get(node); ok {
		first = cached.(Lease)
	} else if first, err = l.begin(ctx, node); err != nil {
		return unknown(err)
	}
	second, err := l.Read(ctx, node)
	switch {
	case err != nil:
		return unknown(err)
	case second.Version == "": // a living kubelet would make it
		return 0, nil
	}
	if err := l.compare(node, first, second); err != nil {
		return 0, err
	}
	return max(0, first.Duration-l.Unchanged(first)), nil
}

// staleTimeout is the time limit of RemoveStale. Together with the time limit of a join
// it is shorter than that of the node-facing listener.
const staleTimeout = 30 * time.Second

// RemoveStale deletes the Node of an earlier boot, if there is one, and returns the
// state of the Node before. bootID is that of the machine's current kernel. The error
// is a [*cluster.Error] as long as a kubelet of that name lives, and for a [Foreign] Node.
//
// kubeadm refuses to join while the Node of that name is Ready, which takes about 50
// seconds to change after its machine went down. Later it would take over the Node with
// the labels, taints and pods of the previous boot.
func (l *Leases) RemoveStale(ctx context.Context, node, bootID string) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, staleTimeout)
	defer cancel()
	n, err := Get(ctx, l.c, node)
	switch {
	case apierrors.IsNotFound(err):
		return State{}, nil
	case apierrors.IsForbidden(err):
		return State{Hidden: true}, nil
	case err != nil:
		return State{}, err
	}
	if why := Foreign(l.key, n); why != "" {
		return State{}, &cluster.Error{Cluster: l.c.Conf.Name, Doing: "let the node in", Retry: cluster.RetryLater, Hint: why}
	}
	before, _ := StateOf(n) // it may still be Ready if the machine reboots fast
	log := l.log.With("node", node, "cluster", l.c.Conf.Name)
	if err := l.awaitDead(ctx, node); apierrors.IsForbidden(err) {
		log.Warn("the Node of an earlier boot stays: drover may not see whether its kubelet lives, apply deploy/rbac.yaml in the cluster", "err", err)
		return before, nil
	} else if err != nil {
		return before, err
	}
	switch {
	case bootID == "", before.BootID == bootID: // the Node of this boot: the node tries to join again
		return before, nil
	}
	err = Delete(ctx, l.c, node, before)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) { // by RBAC, by an admission policy
		log.Warn("the Node of an earlier boot stays until the cluster finds it NotReady: drover may not delete it, apply deploy/rbac.yaml in the cluster", "err", err)
		return before, nil
	}
	if err == nil {
		log.Info("deleted the Node of an earlier boot, whose kubelet is dead", "uid", before.UID, "boot", before.BootID)
	}
	return before, err
}
