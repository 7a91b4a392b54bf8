package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drover/pools/kube/cluster"
)

const atOnce = 8 // Nodes of one cluster that EachManaged works on

// State is what the cluster knew of a Node at one time. The zero value means that
// there was none.
type State struct {
	Hidden  bool // drover may not read Nodes
	Managed bool // it has the mark
	UID     types.UID
	BootID  string // of the machine's kernel

	heartbeat, transition metav1.Time // of the condition Ready
}

// StateOf returns the state of a Node, and whether it is Ready.
func StateOf(n *corev1.Node) (s State, ready bool) {
	s = State{UID: n.UID, BootID: n.Status.NodeInfo.BootID, Managed: n.Labels[Mark] != ""}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			s.heartbeat, s.transition = c.LastHeartbeatTime, c.LastTransitionTime
			ready = c.Status == corev1.ConditionTrue
		}
	}
	return s, ready
}

// ReadySince reports whether a Node is Ready in the boot with that ID, or in any if
// the ID is empty, and whether its kubelet has written it since before. Clocks of
// server, cluster and node need not agree for that: no time is compared with that of
// another clock.
func ReadySince(n *corev1.Node, before State, bootID string) bool {
	s, ready := StateOf(n)
	unchanged := s.UID == before.UID && s.BootID == before.BootID && s.heartbeat.Equal(&before.heartbeat) && s.transition.Equal(&before.transition)
	return ready && !unchanged && (bootID == "" || s.BootID == bootID)
}

// look returns what the cluster knows of a Node before it joins. A machine that
// reboots fast still seems Ready then; that must not be taken for Ready in this
// boot.
func look(ctx context.Context, c *cluster.Cluster, node string) (State, error) {
	n, err := Get(ctx, c, node)
	switch {
	case apierrors.IsNotFound(err):
		return State{}, nil
	case apierrors.IsForbidden(err):
		return State{Hidden: true}, nil
	case err != nil:
		return State{}, err
	}
	s, _ := StateOf(n)
	return s, nil
}

// Get reads a Node.
func Get(ctx context.Context, c *cluster.Cluster, name string) (*corev1.Node, error) {
	client, err := c.Connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, c.Wrap("look for the Node", err)
	}
	return n, nil
}

// AwaitReady waits until ready returns true for the Node of that name, and returns
// the Node.
func AwaitReady(ctx context.Context, c *cluster.Cluster, name string, ready func(*corev1.Node) bool) (*corev1.Node, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var found *corev1.Node
	var mu sync.Mutex
	var last error
	check := func(n *corev1.Node) {
		if found == nil && ready(n) {
			found = n
			cancel(nil)
		}
	}
	nodes := func(client kubernetes.Interface) cluster.Source[*corev1.NodeList] { return client.CoreV1().Nodes() }
	cluster.Follow(ctx, c.Connect, nodes, "metadata.name="+name, cluster.Handler[*corev1.Node]{
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
				last = err
			}
		},
	})
	mu.Lock()
	defer mu.Unlock()
	switch err := context.Cause(ctx); {
	case found != nil:
		return found, nil
	case last != nil:
		return nil, fmt.Errorf("%w; last: %w", err, last)
	default:
		return nil, err
	}
}

// EachManaged calls f for each Node with the mark, for several at a time. An error
// of one does not keep f from the others; the result has the first five.
func EachManaged(ctx context.Context, c *cluster.Cluster, f func(n *corev1.Node) error) error {
	client, err := c.Connect()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var errs []error
	opts := metav1.ListOptions{LabelSelector: Mark, Limit: cluster.ListPage}
	for {
		call, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
		page, err := client.CoreV1().Nodes().List(call, opts)
		cancel()
		if err != nil {
			return errors.Join(append(errs, c.Wrap("list the Nodes", err))...)
		}
		var wg sync.WaitGroup
		slots := make(chan struct{}, atOnce)
		for i := range page.Items {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if err := f(&page.Items[i]); err != nil {
					mu.Lock()
					defer mu.Unlock()
					if len(errs) < 5 { // the others say the same
						errs = append(errs, fmt.Errorf("node %q: %w", page.Items[i].Name, err))
					}
				}
			})
		}
		wg.Wait()
		if opts.Continue = page.Continue; opts.Continue == "" {
			return errors.Join(errs...)
		}
	}
}
