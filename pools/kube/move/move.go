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

	"drover/pools"
	"drover/pools/kube/cluster"
	"drover/pools/kube/node"
)

const (
	movePace  = 5 * time.Second // between two checks of a node that moves
	longGone  = 2 * time.Minute // silence of a kubelet whose machine is off rather than busy
	maxDrains = 32              // nodes of one cluster that are drained at the same time

	moveNote = "drover/moving" // annotation: drover has cordoned this Node, and may uncordon it
)

// Mover moves nodes out of one cluster.
type Mover struct {
	*cluster.Cluster
	Key        []byte        // seals what drover writes into Nodes
	Leases     *node.Leases  // of the cluster
	Pace, Gone time.Duration // see [drover/pools/kube.Clusters]; 0 is the default
	Log        *slog.Logger
	Now        func() time.Time // the clock

	// Target returns the Plan of the machine of a Node if that belongs elsewhere,
	// else nil.
	Target func(node string) *pools.Plan
	// Lookup returns a cluster by name.
	Lookup func(name string) (*cluster.Cluster, error)

	drains *semaphore.Weighted
	mu     sync.Mutex
	moves  map[string]*move // by node
}

// move is a node on its way out of the cluster.
type move struct {
	node string
	wake chan struct{} // holds one: check again now

	// Only the goroutine of the move uses these.
	uid      types.UID
	lease    node.Lease // when its kubelet became silent
	deadline time.Time  // of the drain; zero until it begins
	drained  bool       // as far as it will be

	// The Mover's mutex guards these.
	info  pools.Move
	anew  bool   // try again to drain
	error string // of the last check
}

// Check starts the move of a Node that belongs elsewhere, or was moving before and
// is back. If it moves already, a drain that was given up begins anew. Spawn runs a
// function in a goroutine of its own.
func (o *Mover) Check(n *corev1.Node, spawn func(func(context.Context)) bool) {
	if o.Target(n.Name) == nil && n.Annotations[moveNote] == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.moves[n.Name]; m != nil {
		m.anew = true
		m.trigger()
		return
	}
	if o.moves == nil {
		o.moves, o.drains = make(map[string]*move), semaphore.NewWeighted(maxDrains)
	}
	m := &move{node: n.Name, wake: make(chan struct{}, 1)}
	m.info = pools.Move{Node: n.Name, From: o.Conf.Name, Step: pools.MoveBegun, Since: o.Now()}
	o.moves[n.Name] = m
	if !spawn(func(ctx context.Context) { o.run(ctx, m) }) {
		delete(o.moves, n.Name)
	}
}

// trigger has the move checked now.
func (m *move) trigger() {
	select {
	case m.wake <- struct{}{}:
	default: // it is about to be checked
	}
}

// Moves returns the moves whose target is known, in any order.
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

// Arrived has the moves checked whose machine has just become Ready as the node of
// p.
func (o *Mover) Arrived(p *pools.Plan) {
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
		pace := cmp.Or(o.Pace, movePace)
		if m.drained {
			pace *= 6 // it may wait for days, and with it a whole room
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-time.After(pace):
		}
	}
}

// setError notes an error, and reports whether it is news.
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

// setStep notes how far the move is, and reports whether the step is news.
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
	if !node.Own(o.Key, n) {
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

// setTarget notes where the node goes. A Node of another UID is another boot's.
func (o *Mover) setTarget(m *move, to *pools.Plan, n *corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.info.To, m.info.As = to.Cluster, to.Node
	if m.anew || m.uid != n.UID {
		m.deadline, m.drained, m.anew = time.Time{}, false, false
	}
	if m.uid != n.UID {
		m.uid, m.lease = n.UID, node.Lease{}
	}
}

// removeSilent deletes the Node of a machine that has left it, and reports whether
// it did: the Node's kubelet is silent, and the machine is Ready where it belongs, or
// has been silent for so long that it is off. Nothing counts that anybody could
// send.
func (o *Mover) removeSilent(ctx context.Context, m *move, n *corev1.Node, to *pools.Plan) (bool, error) {
	lease, err := o.Leases.Read(ctx, m.node)
	if err != nil {
		return false, err
	}
	if m.lease.At.IsZero() || lease.Version != m.lease.Version {
		m.lease = lease
	}
	seen, _ := node.StateOf(n)
	silent := o.Now().Sub(m.lease.At)
	if silent < lease.Renewal || silent < cmp.Or(o.Gone, longGone) && !o.arrived(ctx, to, seen.BootID) {
		return false, nil
	}
	if err := node.Delete(ctx, o.Cluster, m.node, seen); err != nil {
		return false, err
	}
	o.Log.Info("deleted the Node of a machine that moved", "node", m.node, "cluster", o.Conf.Name, "to", to.Cluster, "silent", silent.Round(time.Second))
	return true, nil
}

// arrived reports whether the machine is Ready where it belongs, in another boot
// than the one that it had here.
func (o *Mover) arrived(ctx context.Context, to *pools.Plan, bootID string) bool {
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

// cordon keeps new pods away from a Node. A Node that somebody else has cordoned
// has no note of drover's, and stays cordoned if it comes back.
func (o *Mover) cordon(ctx context.Context, n *corev1.Node) error {
	if n.Spec.Unschedulable {
		return nil
	}
	_, err := o.patch(ctx, n, true, node.Seal(o.Key, string(n.UID), moveNote))
	return err
}

// uncordon reverts cordon, and reports whether nothing is left to revert.
func (o *Mover) uncordon(ctx context.Context, n *corev1.Node) (done bool, err error) {
	note := n.Annotations[moveNote]
	if note == "" || !hmac.Equal([]byte(note), []byte(node.Seal(o.Key, string(n.UID), moveNote))) {
		return true, nil // not cordoned, or not by this drover
	}
	return o.patch(ctx, n, nil, nil)
}

// patch changes the field unschedulable and the note of a Node; nil removes one. It
// returns false when somebody else writes the Node at the same time: the next check
// sees the result.
func (o *Mover) patch(ctx context.Context, n *corev1.Node, unschedulable, note any) (bool, error) {
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": unschedulable}, "metadata": map[string]any{
		"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": map[string]any{moveNote: note},
	}})
	if err == nil {
		err = node.Patch(ctx, o.Cluster, n.Name, body)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, o.Wrap("cordon the Node", err)
}
