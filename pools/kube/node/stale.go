package node

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools/kube/cluster"
)

// staleTimeout is for all that RemoveStale does. With the time limit of a join
// after it, it is less than what the node-facing listener gives a join.
const staleTimeout = 30 * time.Second

// RemoveStale deletes the Node of an earlier boot, if there is one, and returns
// what the cluster knows of the node when it joins. The boot ID is that of the
// machine's kernel now. The error is a [*cluster.Error] as long as a kubelet of that
// name lives.
//
// kubeadm refuses to join as long as the cluster considers the Node of that name
// Ready, which lasts for about 50 seconds after its machine went away. Later it
// would take over the Node with the labels, taints and pods of the boot before.
func (l *Leases) RemoveStale(ctx context.Context, node, bootID string) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, staleTimeout)
	defer cancel()
	before, err := look(ctx, l.c, node)
	if err != nil || before.UID == "" {
		return before, err
	}
	log := l.log.With("node", node, "cluster", l.c.Conf.Name)
	if err := l.awaitDead(ctx, node); apierrors.IsForbidden(err) {
		log.Warn("the Node of an earlier boot stays: drover may not see whether its kubelet lives, apply deploy/rbac.yaml in the cluster", "err", err)
		return before, nil
	} else if err != nil {
		return before, err
	}
	switch {
	case bootID == "", before.BootID == bootID: // its kubelet has registered it before; now it tries again
		return before, nil
	case !before.Managed:
		log.Warn("the Node of an earlier boot stays until the cluster finds it NotReady, since drover did not make it",
			"remedy", "kubectl label node "+node+" "+Mark+"="+MarkValue)
		return before, nil
	}
	return before, logRemoval(log, before, Delete(ctx, l.c, node, before))
}

// logRemoval logs the outcome of a deletion. It returns nil if the node can join,
// even if its old Node stays.
func logRemoval(log *slog.Logger, before State, err error) error {
	switch {
	case err == nil:
		log.Info("deleted the Node of an earlier boot, whose kubelet is dead", "uid", before.UID, "boot", before.BootID)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err): // by RBAC, by an admission policy
		log.Warn("the Node of an earlier boot stays until the cluster finds it NotReady: drover may not delete it, apply deploy/rbac.yaml in the cluster", "err", err)
		return nil
	}
	return err
}

// Delete deletes the Node that was seen, and no other of that name.
func Delete(ctx context.Context, c *cluster.Cluster, node string, seen State) error {
	client, err := c.Connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	err = client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &seen.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return c.Wrap("delete the Node of an earlier boot", err)
	}
	return nil
}
