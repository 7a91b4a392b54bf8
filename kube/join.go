package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drover/internal/wait"
	"drover/kube/cluster"
	"drover/kube/node"
	"drover/kube/token"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	joinTimeout = 20 * time.Second // of a join, after the stale Node is removed
	maxJoining  = 4096             // nodes on their way to Ready, in all clusters

	// readyTimeout is the time that a node has to be Ready after its token expired:
	// it may have used the token at the last moment, and have pods that start slowly.
	readyTimeout = 5 * time.Minute
)

// joining is a node on its way to Ready.
type joining struct {
	tenant *tenant
	plan   *resolve.Plan
	given  node.Applied // the labels and taints that its kubelet registers with
	bootID string       // of its kernel; empty if unknown
	before node.State   // at its request to join
	tok    token.Token  // zero if it is shared, or from before a restart of drover
	cancel context.CancelFunc
}

// Expect announces that the machine of p boots and will send its request to join soon.
// It returns at once. In the background it reads the Lease of the machine's previous
// kubelet, so that [Clusters.Join] waits less.
func (c *Clusters) Expect(p *resolve.Plan) {
	if t, err := c.tenant(p.Cluster); err == nil {
		t.leases.Start(p.Node, func(f func(context.Context)) bool { return c.spawn(c.ctx, f) })
	}
}

// Living returns an error if a kubelet of the node of p lives in its cluster, so that the machine
// that boots in its name is another one. While that is not certain, it returns after which time to
// ask again: the Lease of a kubelet that lives changes within its duration, 40 seconds by default,
// counted from the first [Clusters.Expect] of the boot. A cluster that does not answer knows of
// no kubelet.
func (c *Clusters) Living(ctx context.Context, p *resolve.Plan) (again time.Duration, err error) {
	t, err := c.tenant(p.Cluster)
	if err != nil {
		return 0, nil // Join says so
	}
	ctx, cancel := context.WithTimeout(cluster.Quiet(ctx), checkTimeout)
	defer cancel()
	t.AwaitSecret(ctx)
	return t.leases.Living(ctx, p.Node)
}

// Join mints a token for the node of p, which asks from the address addr, and returns its
// JoinConfiguration. It deletes an earlier token of the node. After a [*cluster.Error]
// the node can try again.
//
// bootID is that of the node's kernel. Join first deletes a Node of another boot, once
// the Lease of its kubelet has not changed for its whole duration, 40 seconds by
// default, counted from the first [Clusters.Expect] of the boot. As long as a kubelet of that name lives, Join returns an error.
func (c *Clusters) Join(ctx context.Context, p *resolve.Plan, addr netip.Addr, bootID string) (pools.JoinConfig, error) {
	t, err := c.tenant(p.Cluster)
	if err != nil {
		return pools.JoinConfig{}, fmt.Errorf("node %q: %w", p.Node, err)
	}
	addrs, err := c.nodeAddresses(&t.Conf, p, addr)
	if err != nil {
		return pools.JoinConfig{}, err
	}
	reg, err := node.Register(p, addrs...)
	if err != nil {
		return pools.JoinConfig{}, fmt.Errorf("node %q: %w", p.Node, err)
	}
	ctx = cluster.Quiet(ctx)
	first, done := context.WithTimeout(ctx, checkTimeout) // at the start of drover it may not be read yet
	t.AwaitSecret(first)
	done()
	before, err := t.leases.RemoveStale(ctx, p.Node, bootID)
	if err != nil {
		return pools.JoinConfig{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if t.joins.Acquire(ctx, 1) != nil {
		return pools.JoinConfig{}, &cluster.Error{Cluster: p.Cluster, Doing: "join", Hint: "too many nodes join at once", Err: context.Cause(ctx), Retry: cluster.RetrySoon}
	}
	defer t.joins.Release(1)
	own, tok, info, err := c.tokenFor(ctx, t, p.Node)
	if err != nil {
		return pools.JoinConfig{}, err
	}
	if e := t.Conf.Endpoint; e != "" && e != info.Endpoint {
		t.warn.Do(func() {
			c.log().Warn("nodes find the cluster at its configured endpoint, but kubelets dial the one of cluster-info, so it must be reachable too",
				"cluster", p.Cluster, "endpoint", e, "cluster-info", info.Endpoint)
		})
	}
	text, err := reg.Render(tok.Full(), cmp.Or(t.Conf.Endpoint, info.Endpoint), info.Hashes)
	if err != nil {
		c.revoke(t, own)
		return pools.JoinConfig{}, fmt.Errorf("node %q: %w", p.Node, err)
	}
	t.leases.Stop(p.Node)
	c.follow(&joining{tenant: t, plan: p, given: reg.Applied(), bootID: bootID, before: before, tok: own})
	c.log().Info("join token given", "node", p.Node, "cluster", p.Cluster, "address", addr, "token", tok.ID, "shared", own.ID == "")
	return pools.JoinConfig{Kubeadm: text}, nil
}

// nodeAddresses returns the addresses that the Node of p registers with: asked, the one
// that it asks from, or one of each family of its cluster. A kubelet whose --node-ip is not
// on its host never gets Ready, and one with an address of another family than the cluster
// gets pods that no Service reaches.
func (c *Clusters) nodeAddresses(conf *pools.Cluster, p *resolve.Plan, asked netip.Addr) ([]netip.Addr, error) {
	families := conf.IPFamilies.All()
	if len(families) == 0 {
		return []netip.Addr{asked}, nil
	}
	known := []netip.Addr{asked.Unmap(), p.Address, p.Address6}
	if c.Addresses != nil {
		known = append(known, c.Addresses(p.MAC)...)
	}
	var addrs []netip.Addr
	for _, family := range families {
		i := slices.IndexFunc(known, func(a netip.Addr) bool { return a.IsValid() && pools.FamilyOf(a) == family })
		if i < 0 {
			return nil, &cluster.Error{
				Cluster: conf.Name, Doing: fmt.Sprintf("join of node %q", p.Node), Retry: cluster.RetryLater,
				Hint: fmt.Sprintf("its Nodes have addresses of %s (ipFamilies), and drover knows no %s address of this machine: give the node one, or the pool a range", conf.IPFamilies, family),
			}
		}
		addrs = append(addrs, known[i])
	}
	return addrs, nil
}

// tokenFor returns tok, the token that a node joins with. own is the same token if it
// has to be deleted after the boot, or zero if all nodes of the cluster share it.
func (c *Clusters) tokenFor(ctx context.Context, t *tenant, name string) (own, tok token.Token, info *cluster.Info, err error) {
	if t.shared != nil {
		shared, info, err := t.shared.Current(ctx, c.minter(t))
		return own, shared.Token, info, err
	}
	m := c.minter(t)
	if own, info, err = m.MintSigned(ctx, name, m.TTL()); err != nil {
		c.revoke(t, own)
	}
	return own, own, info, err
}

// revoke deletes a token in the background, unless it is zero. It may fail: tokens
// expire.
func (c *Clusters) revoke(t *tenant, tok token.Token) {
	if tok.ID != "" {
		c.spawn(c.ctx, func(ctx context.Context) { c.deleteToken(ctx, t, tok) })
	}
}

func (c *Clusters) deleteToken(ctx context.Context, t *tenant, tok token.Token) {
	if err := c.minter(t).Delete(ctx, tok); err != nil {
		c.log().Debug("join token stays until it expires", "token", tok.ID, "err", err)
	}
}

// Resume waits in the background until a node is Ready that got its token before the
// server was restarted. bootID is that of the node's kernel.
func (c *Clusters) Resume(p *resolve.Plan, bootID string) error {
	t, err := c.tenant(p.Cluster)
	if err != nil {
		return fmt.Errorf("node %q: %w", p.Node, err)
	}
	if bootID == "" {
		return fmt.Errorf("node %q: its boot is not known", p.Node)
	}
	c.follow(&joining{tenant: t, plan: p, bootID: bootID})
	return nil
}

// follow waits in the background until a node is Ready. If an earlier request of the
// node is followed already, that ends, and its token is deleted.
func (c *Clusters) follow(j *joining) {
	p, key := j.plan, j.plan.Cluster+"/"+j.plan.Node
	ctx, cancel := context.WithTimeout(c.ctx, c.minter(j.tenant).TTL()+readyTimeout)
	j.cancel = cancel
	c.mu.Lock()
	earlier := c.joining[key]
	skip := j.before.Hidden || earlier == nil && len(c.joining) >= maxJoining
	if !skip {
		c.joining[key] = j
	}
	c.mu.Unlock()
	if earlier != nil {
		earlier.cancel()
		c.revoke(earlier.tenant, earlier.tok)
	}
	done := func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.joining[key] == j {
			delete(c.joining, key)
		}
	}
	if skip {
		c.log().Warn("node joins, but is not followed until it is Ready", "node", p.Node, "cluster", p.Cluster, "forbidden", j.before.Hidden)
	}
	if skip || !c.spawn(ctx, func(ctx context.Context) { defer done(); c.waitReady(ctx, j) }) {
		done()
	}
}

// ready reports whether the Node is Ready in this boot.
func (j *joining) ready(n *corev1.Node) bool { return node.ReadySince(n, j.before, j.bootID) }

// waitReady waits until the node is Ready, deletes its token, and gives the Node its
// labels and taints.
func (c *Clusters) waitReady(ctx context.Context, j *joining) {
	log := c.log().With("node", j.plan.Node, "cluster", j.plan.Cluster)
	n, err := node.AwaitReady(ctx, j.tenant.Cluster, j.plan.Node, j.ready)
	switch {
	case errors.Is(err, context.Canceled): // by a newer request, or by Close
		return
	case err != nil:
		log.Warn("node did not get Ready", "err", err)
		return
	}
	at := c.now()
	failed := c.applyLabels(ctx, j, n)
	if j.tok.ID != "" {
		c.deleteToken(ctx, j.tenant, j.tok)
	}
	log.Info("node is Ready")
	if c.OnReady != nil {
		c.OnReady(j.plan, at)
	}
	for _, t := range c.tenants() {
		t.mover.Arrived(j.plan)
	}
	for delay := time.Second; failed != nil; delay = min(2*delay, 30*time.Second) {
		log.Warn("labels and taints not set", "err", failed)
		if errors.Is(failed, node.ErrUnmarked) || apierrors.IsForbidden(failed) || apierrors.IsInvalid(failed) || wait.Sleep(ctx, delay) != nil {
			return
		}
		if n, failed = node.Get(ctx, j.tenant.Cluster, j.plan.Node); failed == nil && j.ready(n) {
			failed = c.applyLabels(ctx, j, n)
		}
	}
}

// applyLabels gives a Node that is Ready its labels and taints. It includes those that
// the kubelet may set: the farm may have changed while the node booted, and a kubelet
// sets them only on a Node that it creates.
func (c *Clusters) applyLabels(ctx context.Context, j *joining, n *corev1.Node) error {
	p := j.plan
	if c.Machines != nil {
		if now := c.Machines.Named(p.Node); now != nil && now.Node == p.Node && now.Cluster == p.Cluster {
			p = now
		}
	}
	reg, err := node.Settings(p)
	if err != nil {
		return err
	}
	_, err = reg.Apply(ctx, j.tenant.Cluster, n, c.sealKey(), j.given)
	if err == nil && c.Machines != nil {
		c.startMove(j.tenant, n) // the farm may have given it to another cluster meanwhile
	}
	return err
}
