package kube

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
)

// vacateTimeout is for all that vacate does. With joinTimeout it is less than
// what the node-facing listener gives a join.
const vacateTimeout = 30 * time.Second

// vacate makes room for the Node of p and returns what is there when it joins.
//
// kubeadm refuses to join as long as the cluster holds the Node of that name for
// Ready, which is for about 50 seconds after its machine went away; and later it
// would take over the Node with the labels, taints and pods of the boot before.
// So that Node goes. The request to join is no proof that it may: who forges a
// whole boot can ask too. That its kubelet is dead is seen in the cluster.
func (c *Clusters) vacate(ctx context.Context, cl *cluster, p *pools.Plan, bootID string) (sighting, error) {
	ctx, cancel := context.WithTimeout(ctx, vacateTimeout)
	defer cancel()
	before, err := cl.look(ctx, p.Node)
	if err != nil || before.uid == "" {
		return before, err
	}
	log := c.log().With("node", p.Node, "cluster", p.Cluster)
	if err := c.lifeless(ctx, cl, p.Node); apierrors.IsForbidden(err) {
		log.Warn("the Node of an earlier boot stays: drover may not see whether its kubelet lives, apply deploy/rbac.yaml in the cluster", "err", err)
		return before, nil
	} else if err != nil {
		return before, err
	}
	switch {
	case bootID == "", before.bootID == bootID: // its kubelet has registered it before; now it tries again
		return before, nil
	case !before.managed:
		log.Warn("the Node of an earlier boot stays until the cluster finds it NotReady, since drover did not make it",
			"remedy", "kubectl label node "+p.Node+" "+markLabel+"="+markValue)
		return before, nil
	}
	err = cl.removeNode(ctx, p.Node, before)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err): // by RBAC, by an admission policy
		log.Warn("the Node of an earlier boot stays until the cluster finds it NotReady: drover may not delete it, apply deploy/rbac.yaml in the cluster", "err", err)
	case err != nil:
		return before, err
	default:
		log.Info("deleted the Node of an earlier boot, whose kubelet is dead", "uid", before.uid, "boot", before.bootID)
	}
	return before, nil
}

// removeNode deletes the Node that was seen, and no other of that name.
func (c *cluster) removeNode(ctx context.Context, node string, seen sighting) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &seen.uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return c.errorf("delete the Node of an earlier boot", err)
	}
	return nil
}
