package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
	"drover/pools/wait"
)

// A kubelet renews the Lease of its Node in kube-node-lease all the time, four
// times in the Lease's duration, which is 40 seconds unless the kubelet's config
// says otherwise. One that does not change for longer than that belongs to a
// kubelet that is dead, or cut off from its cluster.
const (
	leaseDuration = 40 * time.Second
	longestWait   = 15 * time.Second // that a Join waits for a Lease; a node is told to come again sooner than that

	maxExpected = 512 // first looks under way, in one cluster
)

// pulse is a Lease at one time. Only versions are compared: the clocks of the
// kubelet, which dates its renewals, and of this server need not agree.
type pulse struct {
	version string // empty: there is no Lease
	at      time.Time
	watch   time.Duration // how long it must not change
}

// pulses are the first looks at the Leases of nodes that boot, by node.
type pulses struct {
	mu    sync.Mutex
	first map[string]pulse
}

func (p *pulses) get(node string) (pulse, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, ok := p.first[node]
	return first, ok
}

func (p *pulses) put(node string, first pulse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == nil {
		p.first = make(map[string]pulse)
	}
	if len(p.first) >= maxFollow {
		for other := range p.first { // it costs its node some seconds
			delete(p.first, other)
			break
		}
	}
	p.first[node] = first
}

func (p *pulses) drop(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.first, node)
}

// Expect tells that the machine of p boots and will ask for its join soon. It
// returns at once. The look that is taken at the Lease of the kubelet that the
// machine ran before is the first of two, see [Clusters.Join]: what takes place
// now need not be waited for then.
func (c *Clusters) Expect(p *pools.Plan) {
	cl, err := c.cluster(p.Cluster)
	if err != nil {
		return
	}
	select {
	case cl.looks <- struct{}{}:
	default:
		return // Join takes the first look, then
	}
	look := func(ctx context.Context) {
		defer func() { <-cl.looks }()
		first, err := cl.pulse(ctx, p.Node)
		if err != nil {
			c.log().Debug("the Lease of a node that boots is not seen", "node", p.Node, "cluster", p.Cluster, "err", err)
			return
		}
		first.watch = c.watchFor(first)
		cl.pulses.put(p.Node, first)
	}
	if !c.spawn(look) {
		<-cl.looks
	}
}

// pulse reads the Lease of a node's kubelet.
func (c *cluster) pulse(ctx context.Context, node string) (pulse, error) {
	client, err := c.connect()
	if err != nil {
		return pulse{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	asked := c.now()
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return pulse{at: asked, watch: renewal(leaseDuration)}, nil // a kubelet that lives would make it
	}
	if err != nil {
		return pulse{}, c.errorf("look at the Lease of the Node's kubelet", err)
	}
	duration := leaseDuration
	if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		duration = time.Duration(*s) * time.Second
	}
	return pulse{version: lease.ResourceVersion, at: asked, watch: renewal(duration)}, nil
}

// renewal is how long a Lease can stay as it is although its kubelet lives: a
// quarter of its duration, to which the kubelet adds up to 4 percent, and the
// time of the request.
func renewal(duration time.Duration) time.Duration {
	return duration/4 + duration/80 + 500*time.Millisecond
}

func (c *Clusters) watchFor(p pulse) time.Duration {
	if c.Watch > 0 {
		return c.Watch
	}
	return p.watch
}

// lifeless makes sure that no kubelet of that name lives. It waits for that as
// long as it has to. The error is a [*ClusterError] when one does live; it wraps
// the API server's refusal when drover may not see Leases.
func (c *Clusters) lifeless(ctx context.Context, cl *cluster, node string) error {
	first, ok := cl.pulses.get(node)
	if !ok {
		var err error
		if first, err = cl.pulse(ctx, node); err != nil {
			return err
		}
		first.watch = c.watchFor(first)
		cl.pulses.put(node, first)
	}
	delay := first.watch - c.now().Sub(first.at)
	switch {
	case delay > longestWait:
		return &ClusterError{Cluster: cl.conf.Name, Doing: "let the node in", Retry: delay,
			Hint: fmt.Sprintf("it has a Node %q, and it takes %s to see whether a kubelet of that name lives", node, first.watch)}
	case wait.Sleep(ctx, delay) != nil:
		return cl.errorf("look at the Lease of the Node's kubelet", context.Cause(ctx))
	}
	second, err := cl.pulse(ctx, node)
	if err != nil {
		return err
	}
	if second.version == first.version {
		return nil
	}
	second.watch = c.watchFor(second)
	cl.pulses.put(node, second)
	return &ClusterError{Cluster: cl.conf.Name, Doing: "let the node in", Retry: retryLater,
		Hint: fmt.Sprintf("a machine that calls itself %s still runs there: its kubelet renewed its Lease within the last %s; is a MAC or a name used twice?",
			node, c.now().Sub(first.at).Round(time.Second))}
}
