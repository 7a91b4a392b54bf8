package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drover/pools"
	"drover/pools/wait"
)

// fieldManager is whom the API server notes as the owner of what drover sets.
const fieldManager = "drover"

// patience is how long a node may take to be Ready after its token expired: it
// used the token at the last moment, and its first pods are slow to start.
const patience = 5 * time.Minute

// sighting is what the cluster knew of a Node at one time; the zero value is
// that there was none.
type sighting struct {
	unseen     bool // we are not allowed to look
	managed    bool // it has the mark
	uid        types.UID
	bootID     string // of the node's kernel
	heartbeat  metav1.Time
	transition metav1.Time
}

func see(n *corev1.Node) (s sighting, ready bool) {
	s = sighting{uid: n.UID, bootID: n.Status.NodeInfo.BootID, managed: n.Labels[markLabel] != ""}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			s.heartbeat, s.transition = c.LastHeartbeatTime, c.LastTransitionTime
			ready = c.Status == corev1.ConditionTrue
		}
	}
	return s, ready
}

// sameKubelet tells whether nothing of s and t proves that a kubelet has
// written in between. Clocks of server, cluster and node need not agree for
// that: no time is compared with another's.
func (s sighting) sameKubelet(t sighting) bool {
	return s.uid == t.uid && s.bootID == t.bootID && s.heartbeat.Equal(&t.heartbeat) && s.transition.Equal(&t.transition)
}

// look returns what the cluster knows of a Node before it joins. A machine that
// reboots fast still looks Ready then; that must not be taken for this boot's.
func (c *cluster) look(ctx context.Context, node string) (sighting, error) {
	n, err := c.node(ctx, node)
	switch {
	case apierrors.IsNotFound(err):
		return sighting{}, nil
	case apierrors.IsForbidden(err):
		return sighting{unseen: true}, nil
	case err != nil:
		return sighting{}, err
	}
	s, _ := see(n)
	return s, nil
}

// followed is a node on its way to Ready.
type followed struct {
	plan   *pools.Plan
	given  note     // what its kubelet registers with
	bootID string   // of its kernel; empty if it is not known
	before sighting // what there was when it asked for its join
	tok    token    // zero if it is not known any more

	cluster *cluster
	cancel  context.CancelFunc
}

// Resume follows a node that got its token before the server was started anew,
// in the boot with that ID, until it is Ready.
func (c *Clusters) Resume(p *pools.Plan, bootID string) error {
	cl, err := c.cluster(p.Cluster)
	if err != nil {
		return fmt.Errorf("node %q: %w", p.Node, err)
	}
	if bootID == "" {
		return fmt.Errorf("node %q: its boot is not known", p.Node)
	}
	c.follow(cl, &followed{plan: p, bootID: bootID})
	return nil
}

// follow sees a node through to Ready, in the background. If the node is
// followed already, it has asked twice: the first token is taken back.
func (c *Clusters) follow(cl *cluster, f *followed) {
	key := f.plan.Cluster + "/" + f.plan.Node
	ctx, cancel := context.WithTimeout(c.ctx, cl.ttl()+patience)
	f.cancel, f.cluster = cancel, cl
	c.mu.Lock()
	earlier := c.followed[key]
	full := earlier == nil && len(c.followed) >= maxFollow
	if !full {
		c.followed[key] = f
	}
	c.mu.Unlock()
	if earlier != nil {
		earlier.cancel()
		if earlier.tok.id != "" {
			c.revoke(earlier.cluster, earlier.tok)
		}
	}
	if full || f.before.unseen {
		c.log().Warn("node joins, but is not followed until it is Ready", "node", f.plan.Node, "cluster", f.plan.Cluster, "full", full, "forbidden", f.before.unseen)
	}
	done := func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.followed[key] == f {
			delete(c.followed, key)
		}
	}
	if full || f.before.unseen || !c.spawn(func(context.Context) { defer done(); c.seeThrough(ctx, f) }) {
		done()
	}
}

// ready tells whether the Node is Ready in the boot that is followed.
func (f *followed) ready(n *corev1.Node) bool {
	s, ready := see(n)
	return ready && !s.sameKubelet(f.before) && (f.bootID == "" || s.bootID == f.bootID)
}

// seeThrough waits until the node is Ready, and does what is to be done then.
func (c *Clusters) seeThrough(ctx context.Context, f *followed) {
	cl, log := f.cluster, c.log().With("node", f.plan.Node, "cluster", f.plan.Cluster)
	node, err := cl.awaitReady(ctx, f)
	switch {
	case errors.Is(err, context.Canceled): // asked anew, or closed
		return
	case err != nil:
		log.Warn("node did not get Ready", "err", err)
		return
	}
	at := c.now()
	_, failed := c.dress(ctx, f, node)
	if f.tok.id != "" {
		if err := cl.unmint(ctx, f.tok); err != nil {
			log.Debug("join token stays until it expires", "token", f.tok.id, "err", err)
		}
	}
	log.Info("node is Ready")
	if c.OnReady != nil {
		c.OnReady(f.plan, at)
	}
	c.arrival(f.plan)
	for delay := time.Second; failed != nil; delay = min(2*delay, 30*time.Second) {
		log.Warn("labels and taints are not set", "err", failed)
		if errors.Is(failed, errUnmarked) || apierrors.IsForbidden(failed) || apierrors.IsInvalid(failed) || wait.Sleep(ctx, delay) != nil {
			return
		}
		if node, failed = cl.node(ctx, f.plan.Node); failed == nil && f.ready(node) {
			_, failed = c.dress(ctx, f, node)
		}
	}
}

// dress gives the Node that is Ready its labels and taints: those that its
// kubelet may not set, and the others too, for the farm may have changed while
// it booted, and a kubelet gives them only to the Node that it makes, not to one
// that it finds.
func (c *Clusters) dress(ctx context.Context, f *followed, n *corev1.Node) (bool, error) {
	p := f.plan
	if c.PlanOf != nil {
		if now := c.PlanOf(p.Node); now != nil && now.Node == p.Node && now.Cluster == p.Cluster {
			p = now
		}
	}
	reg, err := registerSettings(p)
	if err != nil {
		return false, err
	}
	changed, err := f.cluster.tend(ctx, n, reg, c.sealKey(), f.given)
	if err == nil && c.PlanOf != nil {
		c.seeOut(f.cluster, n) // the farm may have it elsewhere by now
	}
	return changed, err
}

// node reads a Node.
func (c *cluster) node(ctx context.Context, name string) (*corev1.Node, error) {
	client, err := c.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, c.errorf("look for the Node", err)
	}
	return n, nil
}

// awaitReady waits until the node is Ready in the boot that is followed.
func (c *cluster) awaitReady(ctx context.Context, f *followed) (*corev1.Node, error) {
	var last error
	for delay := time.Second; ; delay = min(2*delay, 30*time.Second) {
		client, err := c.connect()
		if err == nil {
			var node *corev1.Node
			node, err = watchReady(ctx, client, f)
			if node != nil {
				return node, nil
			}
		}
		switch {
		case err == nil:
			delay = time.Second // a watch has its time limit
		case apierrors.IsForbidden(err):
			return nil, c.errorf("watch the Node", err)
		case ctx.Err() == nil:
			last = err
		}
		if wait.Sleep(ctx, delay) != nil {
			if last != nil {
				return nil, fmt.Errorf("%w; last: %w", ctx.Err(), last)
			}
			return nil, ctx.Err()
		}
	}
}

// watchReady watches a Node until it is Ready or the watch ends.
func watchReady(ctx context.Context, client kubernetes.Interface, f *followed) (*corev1.Node, error) {
	opts := metav1.ListOptions{FieldSelector: "metadata.name=" + f.plan.Node}
	list, err := listNodes(ctx, client, opts)
	if err != nil {
		return nil, err
	}
	for _, n := range list.Items {
		if f.ready(&n) {
			return &n, nil
		}
	}
	limit := int64(300) // seconds
	opts.ResourceVersion, opts.TimeoutSeconds = list.ResourceVersion, &limit
	w, err := client.CoreV1().Nodes().Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		n, ok := event.Object.(*corev1.Node)
		if !ok {
			return nil, apierrors.FromObject(event.Object)
		}
		if f.ready(n) {
			return n, nil
		}
	}
	return nil, nil
}

func listNodes(ctx context.Context, client kubernetes.Interface, opts metav1.ListOptions) (*corev1.NodeList, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return client.CoreV1().Nodes().List(ctx, opts)
}
