package kube

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/pools"
)

const (
	movePace  = 5 * time.Second // between two looks at a node that moves
	longGone  = 2 * time.Minute // how long a kubelet is silent whose machine is off rather than busy
	maxDrains = 32              // nodes of one cluster whose pods are looked at, at one time

	moveNote = "drover/moving" // annotation: drover has cordoned this Node, and may uncordon it
)

// move is a node on its way out of a cluster.
//
// What it knows is in the cluster: a Node with drover's mark and seal, whose
// machine the farm has in another cluster, moves. So it goes on where it was
// after drover was started anew.
type move struct {
	cl   *cluster
	node string
	wake chan struct{} // holds one: look again now

	// Only the goroutine of the move uses these.
	uid      types.UID
	pulse    pulse     // since when its kubelet is silent
	deadline time.Time // of the drain; zero until it begins
	drained  bool      // as far as it will be

	mu    sync.Mutex
	info  pools.Move
	anew  bool   // try again to drain
	error string // of the last look
}

// target returns the Plan of the machine of a Node if that belongs elsewhere, and
// nil if it is where it belongs, or in no config at all.
func (c *Clusters) target(cl *cluster, node string) *pools.Plan {
	p := c.PlanOf(node)
	if p == nil && c.HeirOf != nil {
		p = c.HeirOf(node)
	}
	if p == nil || p.Cluster == cl.conf.Name && p.Node == node {
		return nil
	}
	return p
}

// seeOut sees to it that a Node which does not belong into a cluster leaves it, or
// stays after all when the farm has it there again.
func (c *Clusters) seeOut(cl *cluster, n *corev1.Node) {
	if c.target(cl, n.Name) == nil && n.Annotations[moveNote] == "" {
		return
	}
	key := cl.conf.Name + "/" + n.Name
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	if m := c.moves[key]; m != nil && m.cl == cl {
		m.again()
		return
	}
	m := &move{cl: cl, node: n.Name, wake: make(chan struct{}, 1)}
	m.info = pools.Move{Node: n.Name, From: cl.conf.Name, Step: pools.MoveBegun, Since: c.now()}
	c.moves[key] = m
	c.running.Go(func() {
		c.runMove(c.ctx, m)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.moves[key] == m {
			delete(c.moves, key)
		}
	})
}

// again has the move looked at now, and a drain that was given up begun anew.
func (m *move) again() {
	m.mu.Lock()
	m.anew = true
	m.mu.Unlock()
	m.poke()
}

func (m *move) poke() {
	select {
	case m.wake <- struct{}{}:
	default: // it is about to look
	}
}

// Moves returns the nodes that are on their way out of a cluster, by name.
func (c *Clusters) Moves() []pools.Move {
	c.mu.Lock()
	all := make([]pools.Move, 0, len(c.moves))
	for _, m := range c.moves {
		m.mu.Lock()
		if m.info.As != "" { // it is known where to
			info := m.info
			info.Detail = cmp.Or(m.error, info.Detail)
			all = append(all, info)
		}
		m.mu.Unlock()
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b pools.Move) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.From, b.From))
	})
	return all
}

// runMove looks at a move again and again until it is over.
func (c *Clusters) runMove(ctx context.Context, m *move) {
	for {
		over, err := c.stepOut(ctx, m)
		if over || ctx.Err() != nil {
			return
		}
		if m.failed(err) {
			c.log().Warn("node does not move yet", "node", m.node, "cluster", m.cl.conf.Name, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-time.After(c.pace(m)):
		}
	}
}

// pace is how long a move is left alone. A node that is drained may wait for days,
// and with it a whole room.
func (c *Clusters) pace(m *move) time.Duration {
	pace := cmp.Or(c.Pace, movePace)
	if m.drained {
		pace *= 6
	}
	return pace
}

// arrival has the moves looked at whose machine has just got Ready.
func (c *Clusters) arrival(p *pools.Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.moves {
		m.mu.Lock()
		here := m.info.As == p.Node && m.info.To == p.Cluster
		m.mu.Unlock()
		if here {
			m.poke()
		}
	}
}

// failed notes an error, and tells whether it is news.
func (m *move) failed(err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	news := text != "" && text != m.error
	m.error = text
	return news
}

// say notes how far the move is, and tells whether the step is news.
func (m *move) say(step pools.MoveStep, format string, args ...any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := m.info.Step != step
	m.info.Step, m.info.Detail = step, fmt.Sprintf(format, args...)
	return news
}

// stepOut does what is to be done now for a node that moves, and tells whether
// that was all.
func (c *Clusters) stepOut(ctx context.Context, m *move) (over bool, err error) {
	if now, err := c.cluster(m.cl.conf.Name); err != nil || now != m.cl {
		return true, nil // in the config it is another one now, or none
	}
	log := c.log().With("node", m.node, "cluster", m.cl.conf.Name)
	n, err := m.cl.node(ctx, m.node)
	switch {
	case apierrors.IsNotFound(err):
		log.Info("node has left the cluster")
		return true, nil
	case err != nil:
		return false, err
	}
	to := c.target(m.cl, m.node)
	if to == nil {
		return m.cl.uncordon(ctx, n, c.sealKey())
	}
	m.aim(to, n)
	if !c.ours(n) {
		if m.say(pools.MoveStays, "drover cannot prove that it made this Node: drain and delete it by hand") {
			log.Warn("the Node of a machine that belongs to another cluster stays: drover cannot prove that it made it",
				"to", to.Cluster, "remedy", "kubectl drain "+m.node+" && kubectl delete node "+m.node)
		}
		return false, nil
	}
	if err := m.cl.cordon(ctx, n, c.sealKey()); err != nil {
		return false, err
	}
	gone, err := c.departed(ctx, m, n, to)
	if gone {
		return true, nil
	}
	return false, errors.Join(c.drain(ctx, m, log.With("to", to.Cluster)), err)
}

// aim notes where the node goes. A Node of another UID is another boot's.
func (m *move) aim(to *pools.Plan, n *corev1.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info.To, m.info.As = to.Cluster, to.Node
	if m.anew || m.uid != n.UID {
		m.deadline, m.drained, m.anew = time.Time{}, false, false
	}
	if m.uid != n.UID {
		m.uid, m.pulse = n.UID, pulse{}
	}
}

// ours tells whether this drover has made a Node: it has the mark, which any
// drover gives, and the seal, which only this one can write.
func (c *Clusters) ours(n *corev1.Node) bool {
	_, genuine := readNote(c.sealKey(), n)
	return n.Labels[markLabel] != "" && n.Annotations[sealNote] != "" && genuine
}

// departed deletes the Node of a machine that is gone from it, and tells whether
// it did: its kubelet is silent, and the machine is Ready where it belongs, or
// has been silent for so long that it is off. Nothing that anybody can send
// counts.
func (c *Clusters) departed(ctx context.Context, m *move, n *corev1.Node, to *pools.Plan) (bool, error) {
	p, err := m.cl.pulse(ctx, m.node)
	if err != nil {
		return false, err
	}
	if m.pulse.at.IsZero() || p.version != m.pulse.version {
		m.pulse = p
	}
	seen, _ := see(n)
	silent := c.now().Sub(m.pulse.at)
	if silent < c.watchFor(p) || silent < cmp.Or(c.Gone, longGone) && !c.arrived(ctx, to, seen.bootID) {
		return false, nil
	}
	if err := m.cl.removeNode(ctx, m.node, seen); err != nil {
		return false, err
	}
	c.log().Info("deleted the Node of a machine that moved", "node", m.node, "cluster", m.cl.conf.Name, "to", to.Cluster, "silent", silent.Round(time.Second))
	return true, nil
}

// arrived tells whether the machine is Ready where it belongs, in another boot
// than the one that it had here.
func (c *Clusters) arrived(ctx context.Context, to *pools.Plan, bootID string) bool {
	cl, err := c.cluster(to.Cluster)
	if err != nil {
		return false
	}
	n, err := cl.node(ctx, to.Node)
	if err != nil {
		return false
	}
	there, ready := see(n)
	return ready && there.managed && there.bootID != "" && there.bootID != bootID
}

// cordonSeal proves that drover has cordoned the Node of that UID.
func cordonSeal(key []byte, uid types.UID) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s\n", uid, moveNote)
	return hex.EncodeToString(mac.Sum(nil))
}

// cordon keeps new pods away from a Node. One that somebody else has cordoned
// has no note of drover's, and stays cordoned if it comes back.
func (c *cluster) cordon(ctx context.Context, n *corev1.Node, key []byte) error {
	if n.Spec.Unschedulable {
		return nil
	}
	_, err := c.schedulable(ctx, n, false, cordonSeal(key, n.UID))
	return err
}

// uncordon takes back what cordon did, and tells whether nothing of it is left.
func (c *cluster) uncordon(ctx context.Context, n *corev1.Node, key []byte) (done bool, err error) {
	switch note := n.Annotations[moveNote]; {
	case note == "":
		return true, nil
	case !hmac.Equal([]byte(note), []byte(cordonSeal(key, n.UID))):
		return true, nil // not drover's
	}
	return c.schedulable(ctx, n, true, nil)
}

// schedulable changes a Node, and tells whether it did: when somebody else does so
// at the same time it does not. The note is nil to remove it.
func (c *cluster) schedulable(ctx context.Context, n *corev1.Node, yes bool, note any) (bool, error) {
	client, err := c.connect()
	if err != nil {
		return false, err
	}
	spec := map[string]any{"unschedulable": true}
	if yes {
		spec["unschedulable"] = nil
	}
	patch, err := json.Marshal(map[string]any{"spec": spec, "metadata": map[string]any{
		"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": map[string]any{moveNote: note},
	}})
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil // the next look sees what there is
	case err != nil:
		return false, c.errorf("cordon the Node", err)
	}
	return true, nil
}
