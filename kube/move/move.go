package move

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"drover/kube/cluster"
	"drover/kube/node"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	checkInterval = 5 * time.Second // the default of Mover.Interval
	offAfter      = 2 * time.Minute // the default of Mover.OffAfter
	maxDrains     = 32              // nodes of one cluster that are drained at the same time
	maxMoves      = 4096            // nodes of one cluster that move at the same time

	movingAnnotation = "drover/moving" // drover has cordoned this Node, and may uncordon it
)

// Mover moves nodes out of one cluster.
type Mover struct {
	*cluster.Cluster
	Key      []byte        // seals drover's annotations of Nodes
	Leases   *node.Leases  // of the cluster
	Interval time.Duration // between two checks of a node that moves; 0 is 5 s
	OffAfter time.Duration // a machine whose kubelet is silent for that long is off; 0 is 2 min
	Log      *slog.Logger
	Now      func() time.Time // the clock

	// Target returns the Plan of the machine of a Node if the machine belongs to
	// another cluster or has another name, else nil.
	Target func(node string) *resolve.Plan
	// Lookup returns a cluster by name.
	Lookup func(name string) (*cluster.Cluster, error)

	once   sync.Once
	drains *semaphore.Weighted
	mu     sync.Mutex
	moves  map[string]*move // by node
	power  map[string]bool  // nodes that [Mover.Drain] has
}

// move is the move of one node out of the cluster.
type move struct {
	node string
	wake chan struct{} // holds one: check again now

	// Only the goroutine of the move uses these.
	uid      types.UID
	lease    node.Lease // when its kubelet became silent
	deadline time.Time  // of the drain; zero until it begins
	drained  bool       // or the time limit is over

	// The Mover's mutex guards these.
	info  pools.Move
	retry bool   // drain again, with a new time limit
	error string // of the last check
}

// Check starts the move of a Node that belongs to another cluster, or that drover has
// cordoned for a move which is cancelled. If the Node moves already, a drain whose time
// limit is over begins again. spawn runs a function in a goroutine, or returns false.
func (o *Mover) Check(n *corev1.Node, spawn func(func(context.Context)) bool) {
	if o.Target(n.Name) == nil && !o.cordoned(n) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.power[n.Name] {
		return // [Mover.Drain] uncordons it, or the next boot of its machine
	}
	if m := o.moves[n.Name]; m != nil {
		m.retry = true
		m.trigger()
		return
	}
	if len(o.moves) >= maxMoves {
		return // the next reconciliation starts it
	}
	if o.moves == nil {
		o.moves = make(map[string]*move)
	}
	m := &move{node: n.Name, wake: make(chan struct{}, 1)}
	m.info = pools.Move{Node: n.Name, From: o.Conf.Name, Step: pools.MoveBegun, Since: o.Now()}
	o.moves[n.Name] = m
	if !spawn(func(ctx context.Context) { o.run(ctx, m) }) {
		delete(o.moves, n.Name)
	}
}

// trigger makes the goroutine of the move check it now.
func (m *move) trigger() {
	select {
	case m.wake <- struct{}{}:
	default: // a check is pending already
	}
}

// Moves returns the moves whose target is known, in no order.
func (o *Mover) Moves() (all []pools.Move) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.moves {
		if m.info.As != "" {
			info := m.info
			info.Detail = cmp.Or(m.error, info.Detail)
			all = append(all, info)
		}
	}
	return all
}

// Arrived triggers a check of the moves whose machine has just become Ready as the node
// of p.
func (o *Mover) Arrived(p *resolve.Plan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.moves {
		if m.info.As == p.Node && m.info.To == p.Cluster {
			m.trigger()
		}
	}
}

// run reconciles a move until it is over.
func (o *Mover) run(ctx context.Context, m *move) {
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.moves, m.node)
	}()
	for {
		over, err := o.reconcile(ctx, m)
		if over || ctx.Err() != nil {
			return
		}
		if o.setError(m, err) {
			o.Log.Warn("node does not move yet", "node", m.node, "cluster", o.Conf.Name, "err", err)
		}
		interval := cmp.Or(o.Interval, checkInterval)
		if m.drained {
			interval *= 6 // the machine may be booted days later, like many others
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-time.After(interval):
		}
	}
}

// setError records the error of a check, and reports whether it is a new one.
func (o *Mover) setError(m *move, err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	news := text != "" && text != m.error
	m.error = text
	return news
}

// setStep records the step of a move with its detail, and reports whether the step is a
// new one.
func (o *Mover) setStep(m *move, step pools.MoveStep, format string, args ...any) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := m.info.Step != step
	m.info.Step, m.info.Detail = step, fmt.Sprintf(format, args...)
	return news
}

// reconcile does the next step of a move, and reports whether the move is over.
func (o *Mover) reconcile(ctx context.Context, m *move) (over bool, err error) {
	log := o.Log.With("node", m.node, "cluster", o.Conf.Name)
	n, err := node.Get(ctx, o.Cluster, m.node)
	switch {
	case apierrors.IsNotFound(err):
		log.Info("node has left the cluster")
		return true, nil
	case err != nil:
		return false, err
	}
	to := o.Target(m.node)
	if to == nil {
		return o.uncordon(ctx, n)
	}
	o.setTarget(m, to, n)
	if !node.Owned(o.Key, n) {
		if o.setStep(m, pools.MoveStays, "drover cannot prove that it made this Node: drain and delete it by hand") {
			log.Warn("the Node of a machine that belongs to another cluster stays: drover cannot prove that it made it",
				"to", to.Cluster, "remedy", "kubectl drain "+m.node+" && kubectl delete node "+m.node)
		}
		return false, nil
	}
	if err := o.cordon(ctx, n); err != nil {
		return false, err
	}
	removed, err := o.removeSilent(ctx, m, n, to)
	if removed {
		return true, nil
	}
	return false, errors.Join(o.drain(ctx, m, log.With("to", to.Cluster)), err)
}

// setTarget records the cluster that the node moves to. A Node with another UID is that
// of another boot: its drain begins anew.
func (o *Mover) setTarget(m *move, to *resolve.Plan, n *corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.info.To, m.info.As = to.Cluster, to.Node
	if m.retry || m.uid != n.UID {
		m.deadline, m.drained, m.retry = time.Time{}, false, false
	}
	if m.uid != n.UID {
		m.uid, m.lease = n.UID, node.Lease{}
	}
}

// removeSilent deletes the Node if its kubelet is silent and the machine is Ready in
// its new cluster, or if the kubelet has been silent for so long that the machine is
// off. It reports whether it deleted the Node. Messages that an unauthenticated client
// can send do not count.
func (o *Mover) removeSilent(ctx context.Context, m *move, n *corev1.Node, to *resolve.Plan) (bool, error) {
	lease, err := o.Leases.Read(ctx, m.node)
	if err != nil {
		return false, err
	}
	if m.lease.At.IsZero() || lease.Version != m.lease.Version {
		m.lease = lease
	}
	seen, _ := node.StateOf(n)
	silent := o.Leases.Unchanged(m.lease)
	if silent < lease.Duration || silent < cmp.Or(o.OffAfter, offAfter) && !o.arrived(ctx, to, seen.BootID) {
		return false, nil
	}
	if err := node.Delete(ctx, o.Cluster, m.node, seen); err != nil {
		return false, err
	}
	o.Log.Info("deleted the Node of a machine that moved", "node", m.node, "cluster", o.Conf.Name, "to", to.Cluster, "silent", silent.Round(time.Second))
	return true, nil
}

// arrived reports whether the machine is Ready in its new cluster, in another boot than
// in this one.
func (o *Mover) arrived(ctx context.Context, to *resolve.Plan, bootID string) bool {
	c, err := o.Lookup(to.Cluster)
	if err != nil {
		return false
	}
	n, err := node.Get(ctx, c, to.Node)
	if err != nil {
		return false
	}
	there, ready := node.StateOf(n)
	return ready && there.Managed && there.BootID != "" && there.BootID != bootID
}

// cordon marks a Node as unschedulable, with an annotation. A Node that another client
// has cordoned gets no annotation, so that uncordon leaves it cordoned.
func (o *Mover) cordon(ctx context.Context, n *corev1.Node) error {
	if n.Spec.Unschedulable {
		return nil
	}
	_, err := o.patch(ctx, n, true, o.mark(n))
	return err
}

// mark returns the value of the annotation of a Node that drover has cordoned.
func (o *Mover) mark(n *corev1.Node) string { return node.Seal(o.Key, string(n.UID), movingAnnotation) }

// uncordon reverts cordon, and reports whether the Node needs no further change.
func (o *Mover) uncordon(ctx context.Context, n *corev1.Node) (done bool, err error) {
	if !o.cordoned(n) {
		return true, nil
	}
	return o.patch(ctx, n, nil, nil)
}

// cordoned reports whether this drover has cordoned a Node.
func (o *Mover) cordoned(n *corev1.Node) bool {
	seal := n.Annotations[movingAnnotation]
	return seal != "" && hmac.Equal([]byte(seal), []byte(o.mark(n)))
}

// patch sets the field unschedulable and the annotation of a Node; nil removes a value.
// It returns false if another client wrote the Node at the same time: the next check
// sees the result.
func (o *Mover) patch(ctx context.Context, n *corev1.Node, unschedulable, seal any) (bool, error) {
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": unschedulable}, "metadata": map[string]any{
		"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": map[string]any{movingAnnotation: seal},
	}})
	if err == nil {
		err = node.Patch(ctx, o.Cluster, n.Name, body)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, o.Wrap("cordon the Node", err)
}
