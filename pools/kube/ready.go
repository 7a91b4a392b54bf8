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
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"drover/pools"
)

// fieldManager owns the labels that drover sets, see "Server-Side Apply" in
// Kubernetes' documentation.
const fieldManager = "drover"

// patience is how long a node may take to be Ready after its token expired: it
// used the token at the last moment, and its first pods are slow to start.
const patience = 5 * time.Minute

// sighting is what the cluster knew of a Node at one time; the zero value is
// that there was none.
type sighting struct {
	unseen     bool // we are not allowed to look
	uid        types.UID
	bootID     string // of the node's kernel
	heartbeat  metav1.Time
	transition metav1.Time
}

func see(n *corev1.Node) (s sighting, ready bool) {
	s = sighting{uid: n.UID, bootID: n.Status.NodeInfo.BootID}
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
	client, err := c.connect()
	if err != nil {
		return sighting{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return sighting{}, nil
	case apierrors.IsForbidden(err):
		return sighting{unseen: true}, nil
	case err != nil:
		return sighting{}, c.errorf("look for the Node", err)
	}
	s, _ := see(n)
	return s, nil
}

// followed is a node on its way to Ready.
type followed struct {
	cancel  context.CancelFunc
	cluster *cluster
	tok     token
}

// follow sees a node through to Ready, in the background. If the node is
// followed already, it has asked twice: the first token is taken back.
func (c *Clusters) follow(cl *cluster, p *pools.Plan, reg *registration, tok token, before sighting) {
	key := p.Cluster + "/" + p.Node
	ctx, cancel := context.WithTimeout(c.ctx, cl.ttl()+patience)
	f := &followed{cancel: cancel, cluster: cl, tok: tok}
	c.mu.Lock()
	earlier := c.followed[key]
	full := earlier == nil && len(c.followed) >= maxFollow
	if !full {
		c.followed[key] = f
	}
	c.mu.Unlock()
	if earlier != nil {
		earlier.cancel()
		c.revoke(earlier.cluster, earlier.tok)
	}
	if full || before.unseen {
		c.log().Warn("node joins, but is not followed until it is Ready", "node", p.Node, "cluster", p.Cluster, "full", full, "forbidden", before.unseen)
	}
	done := func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.followed[key] == f {
			delete(c.followed, key)
		}
	}
	if full || before.unseen || !c.spawn(func(context.Context) { defer done(); c.seeThrough(ctx, cl, p, reg, tok, before) }) {
		done()
	}
}

// seeThrough waits until the node is Ready, and does what is to be done then.
func (c *Clusters) seeThrough(ctx context.Context, cl *cluster, p *pools.Plan, reg *registration, tok token, before sighting) {
	log := c.log().With("node", p.Node, "cluster", p.Cluster)
	node, err := cl.awaitReady(ctx, p.Node, before)
	switch {
	case errors.Is(err, context.Canceled): // asked anew, or closed
		return
	case err != nil:
		log.Warn("node did not get Ready", "err", err)
		return
	}
	at := c.now()
	labels := cl.label(ctx, node, reg, before)
	if err := cl.unmint(ctx, tok); err != nil {
		log.Debug("join token stays until it expires", "token", tok.id, "err", err)
	}
	log.Info("node is Ready")
	if c.OnReady != nil {
		c.OnReady(p, at)
	}
	for delay := time.Second; labels != nil; delay = min(2*delay, 30*time.Second) {
		log.Warn("labels are not set", "err", labels)
		gone := apierrors.IsConflict(labels) || apierrors.IsNotFound(labels)
		if gone || apierrors.IsForbidden(labels) || !sleep(ctx, delay) {
			return
		}
		labels = cl.label(ctx, node, reg, before)
	}
}

// awaitReady waits until the kubelet that came after before is Ready.
func (c *cluster) awaitReady(ctx context.Context, name string, before sighting) (*corev1.Node, error) {
	var last error
	for delay := time.Second; ; delay = min(2*delay, 30*time.Second) {
		client, err := c.connect()
		if err == nil {
			var node *corev1.Node
			node, err = watchReady(ctx, client, name, before)
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
		if !sleep(ctx, delay) {
			if last != nil {
				return nil, fmt.Errorf("%w; last: %w", ctx.Err(), last)
			}
			return nil, ctx.Err()
		}
	}
}

// watchReady watches a Node until it is Ready or the watch ends.
func watchReady(ctx context.Context, client kubernetes.Interface, name string, before sighting) (*corev1.Node, error) {
	opts := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	list, err := listNodes(ctx, client, opts)
	if err != nil {
		return nil, err
	}
	for _, n := range list.Items {
		if s, ready := see(&n); ready && !s.sameKubelet(before) {
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
		if s, ready := see(n); ready && !s.sameKubelet(before) {
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

// label gives a Node all of its labels: those that its kubelet may not set, and
// the others too, for a kubelet sets them only when it makes the Node, not when
// it finds the one of an earlier boot. Labels that drover set before and that
// are no longer asked for go; those of others stay.
func (c *cluster) label(ctx context.Context, node *corev1.Node, reg *registration, before sighting) error {
	if len(reg.labels) == 0 && node.UID != before.uid {
		return nil
	}
	client, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// The UID makes the request fail, not make a Node, when that one is gone.
	apply := corev1apply.Node(node.Name).WithUID(node.UID).WithLabels(reg.labels)
	if _, err := client.CoreV1().Nodes().Apply(ctx, apply, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return c.errorf("label the Node", err)
	}
	return nil
}

// sleep waits; it returns false when ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
