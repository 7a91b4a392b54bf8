package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/internal/printable"
	"drover/kube/client"
	"drover/kube/cluster"
)

const (
	maxWorkers = 8   // of EachManaged
	maxErrors  = 5   // that EachManaged returns
	maxError   = 500 // bytes of an error that is kept
	maxID      = 128 // bytes of a UID or boot ID; both have 36
	maxName    = 253 // bytes of the name of a Node
)

// State is the state of a Node at one time. The zero value means that the Node did not
// exist.
type State struct {
	Hidden  bool // drover may not read Nodes
	Managed bool // it has the label Managed
	UID     types.UID
	BootID  string // of the machine's kernel

	heartbeat, transition metav1.Time // of the condition Ready
}

// StateOf returns the state of a Node, and whether it is Ready.
func StateOf(n *corev1.Node) (s State, ready bool) {
	s = State{UID: types.UID(bounded(string(n.UID))), BootID: bounded(n.Status.NodeInfo.BootID), Managed: n.Labels[Managed] != ""}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			s.heartbeat, s.transition = c.LastHeartbeatTime, c.LastTransitionTime
			ready = c.Status == corev1.ConditionTrue
		}
	}
	return s, ready
}

// controlsPlane reports whether a Node is a host of the control plane, by its label or its
// taint, which a kubelet cannot set or remove (NodeRestriction).
func controlsPlane(n *corev1.Node) bool {
	roles := []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
	for _, role := range roles {
		if _, ok := n.Labels[role]; ok {
			return true
		}
	}
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(roles, t.Key) })
}

// bounded returns the begin of an ID, since states are kept for long.
func bounded(id string) string {
	if len(id) > maxID {
		return strings.Clone(id[:maxID]) // without the memory of the rest
	}
	return id
}

// ReadySince reports whether a Node is Ready in the boot with that ID, or in any boot if
// the ID is empty, and its kubelet has written it since the state before. The clocks of
// server, cluster and node may differ: times of different clocks are not compared.
func ReadySince(n *corev1.Node, before State, bootID string) bool {
	s, ready := StateOf(n)
	unchanged := s.UID == before.UID && s.BootID == before.BootID && s.heartbeat.Equal(&before.heartbeat) && s.transition.Equal(&before.transition)
	return ready && !unchanged && (bootID == "" || s.BootID == bootID)
}

// Get reads a Node.
func Get(ctx context.Context, c *cluster.Cluster, name string) (*corev1.Node, error) {
	n, err := c.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	return n, c.Wrap("read the Node", err)
}

// Delete deletes the Node with the UID of seen. A Node that is gone is no error.
func Delete(ctx context.Context, c *cluster.Cluster, node string, seen State) error {
	err := c.Client().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &seen.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.Wrap("delete the Node of an earlier boot", err)
}

// AwaitReady watches the Node of that name until ready returns true for it, and returns
// the Node. The error is Forbidden at once if drover may not watch Nodes.
func AwaitReady(ctx context.Context, c *cluster.Cluster, name string, ready func(*corev1.Node) bool) (*corev1.Node, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var found *corev1.Node
	var mu sync.Mutex
	var last error
	check := func(n *corev1.Node) {
		if found == nil && n.Name == name && ready(n) {
			found = n
			cancel(nil)
		}
	}
	nodes := func(client client.Interface) cluster.Source[*corev1.NodeList] { return client.CoreV1().Nodes() }
	cluster.Follow(ctx, c, nodes, "metadata.name="+name, cluster.Handler[*corev1.Node]{
		Listed: func(all []*corev1.Node) {
			for _, n := range all {
				check(n)
			}
		},
		Changed: check,
		Tried: func(_ string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if apierrors.IsForbidden(err) {
				cancel(c.Wrap("watch the Node", err))
			} else if err != nil && ctx.Err() == nil {
				last = errors.New(printable.Line(err.Error(), maxError)) // it is kept until the node is Ready
			}
		},
	})
	mu.Lock()
	defer mu.Unlock()
	if found != nil {
		return found, nil
	}
	return nil, errors.Join(context.Cause(ctx), last)
}

// EachManaged calls f for each Node with the label [Managed], from several goroutines.
// It calls f for all Nodes despite errors, and returns the first five of them.
func EachManaged(ctx context.Context, c *cluster.Cluster, f func(n *corev1.Node) error) error {
	var mu sync.Mutex
	var errs []error
	opts := metav1.ListOptions{LabelSelector: Managed}
	err := cluster.EachPage(ctx, c, c.Client().CoreV1().Nodes(), opts, func(page []*corev1.Node) {
		var work errgroup.Group
		work.SetLimit(maxWorkers)
		for _, n := range page {
			if len(n.Name) > maxName {
				continue // no API server has it
			}
			work.Go(func() error {
				err := f(n)
				mu.Lock()
				defer mu.Unlock()
				if err != nil && len(errs) < maxErrors {
					errs = append(errs, fmt.Errorf("node %q: %w", n.Name, err))
				}
				return nil
			})
		}
		_ = work.Wait() // errors are in errs
	})
	return errors.Join(append(errs, c.Wrap("list the Nodes", err))...)
}
