package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/internal/lograte"
	"drover/internal/wait"
	"drover/kube/cluster"
	"drover/kube/node"
	"drover/pools/resolve"
)

const (
	maxReconcileDelay = time.Minute     // the longest delay after an error
	maxRefusedDelay   = 5 * time.Minute // the same, after an answer that drover refused: it takes time to read
	maxUnknown        = 5               // Nodes that are logged by name
)

// Refresh reconciles all Nodes with the label [node.Managed] with the farm, in the
// background. Call it after each change of the farm. A Node gets the labels and taints
// of its Plan, and keeps those of other clients. A Node whose machine belongs to another
// cluster now is moved; see [Clusters.Moves]. Nodes that the farm does not have are left
// alone. Each cluster is tried again, independently, until it succeeds.
func (c *Clusters) Refresh() {
	if c.Machines == nil {
		return
	}
	for _, t := range c.tenants() {
		select {
		case t.refresh <- struct{}{}:
		default: // it is requested already
		}
	}
}

// reconcileLoop reconciles a cluster after each Refresh.
func (c *Clusters) reconcileLoop(t *tenant) {
	log := c.log().With("cluster", t.Conf.Name)
	var problem lograte.Repeated
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-t.refresh:
		}
		for delay, longest := time.Second, maxReconcileDelay; ; delay = min(2*delay, longest) {
			changed, err := c.reconcile(t.ctx, t)
			if t.ctx.Err() != nil {
				return
			}
			if c.OnReconcile != nil {
				c.OnReconcile(t.Conf.Name, changed, err)
			}
			if changed > 0 {
				log.Info("labels and taints updated", "nodes", changed)
			}
			if err == nil {
				problem.Allow("")
				break
			}
			if _, refused := errors.AsType[*cluster.RefusedError](err); refused {
				longest = maxRefusedDelay
			}
			if problem.Allow(err.Error()) {
				log.Warn("labels and taints not updated yet", "err", err, "again", delay)
			}
			_ = wait.Sleep(t.ctx, delay)
		}
	}
}

// reconcile reconciles each Node with the label [node.Managed], and returns the number
// of Nodes that changed.
func (c *Clusters) reconcile(ctx context.Context, t *tenant) (changed int, err error) {
	t.AwaitSecret(ctx)
	var mu sync.Mutex
	var unknown []string // the first of them
	var unknowns int
	err = node.EachManaged(ctx, t.Cluster, func(n *corev1.Node) error {
		known, nodeChanged, err := c.reconcileNode(ctx, t, n)
		mu.Lock()
		defer mu.Unlock()
		if !known {
			if unknowns++; unknowns <= maxUnknown {
				unknown = append(unknown, n.Name)
			}
		}
		if nodeChanged {
			changed++
		}
		return err
	})
	if unknowns > 0 && err == nil {
		c.log().Info("Nodes that drover made stay in the cluster: no config names them", "cluster", t.Conf.Name, "count", unknowns, "nodes", unknown)
	}
	return changed, err
}

// reconcileNode gives a Node its labels and taints if it belongs to the cluster, and
// starts its move if it does not. It reports whether the farm knows the Node, and
// whether it changed.
func (c *Clusters) reconcileNode(ctx context.Context, t *tenant, n *corev1.Node) (known, changed bool, err error) {
	c.startMove(t, n)
	p := c.Machines.Named(n.Name)
	if p == nil || p.Cluster != t.Conf.Name || p.Node != n.Name {
		return p != nil, false, nil
	}
	reg, err := node.Settings(p)
	if err != nil {
		// No error, since a retry is useless: the operator has to correct the config.
		c.log().Warn("invalid labels or taints", "node", n.Name, "cluster", t.Conf.Name, "err", err)
		return true, false, nil
	}
	changed, err = reg.Apply(ctx, t.Cluster, n, c.sealKey(), node.Applied{})
	return true, changed, err
}

// startMove starts the move of a Node that does not belong to the cluster.
func (c *Clusters) startMove(t *tenant, n *corev1.Node) {
	t.mover.Check(n, func(f func(context.Context)) bool { return c.spawn(t.ctx, f) })
}

// target returns the Plan of the machine of a Node if the machine belongs to another
// cluster or has another name. It returns nil if the Node is right, or not in the farm.
func (c *Clusters) target(t *tenant, name string) *resolve.Plan {
	p := c.Machines.Named(name)
	if p == nil || p.Cluster == t.Conf.Name && p.Node == name {
		return nil
	}
	return p
}
