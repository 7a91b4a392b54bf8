package externalhost

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/internal/wait"
	"drover/kube/cluster"
)

// leaseSeconds is the duration that kubelets write, too.
const leaseSeconds = 40

// renew renews the Leases of all hosts until ctx is done, spread over the interval.
func (h *Hosts) renew(ctx context.Context) {
	renewed := map[types.UID]time.Time{}
	failed := false
	for wait.Sleep(ctx, time.Second) == nil {
		h.mu.Lock()
		leased := maps.Clone(h.leased)
		h.mu.Unlock()
		// A fraction of all in each second; a new one at once.
		share := len(leased)/int(renewInterval/time.Second) + 1
		var errs int
		oldest := func(a, b string) int { return renewed[leased[a]].Compare(renewed[leased[b]]) }
		for _, name := range slices.SortedFunc(maps.Keys(leased), oldest) {
			uid := leased[name]
			at, known := renewed[uid]
			if known && (h.now().Sub(at) < renewInterval || share == 0) {
				continue
			}
			if known {
				share--
			}
			if err := h.renewOne(ctx, name, uid); err != nil {
				if errs++; ctx.Err() == nil && !failed {
					h.log.Warn("Lease of an external host not renewed", "host", name, "err", err)
				}
				continue
			}
			renewed[uid] = h.now()
		}
		failed = errs > 0
		maps.DeleteFunc(renewed, func(uid types.UID, at time.Time) bool { return h.now().Sub(at) > 10*renewInterval })
	}
}

// renewOne renews the Lease of a host, or makes it. The cluster deletes it with the Node.
func (h *Hosts) renewOne(ctx context.Context, name string, uid types.UID) error {
	leases := h.cluster.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(h.now())
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": now}})
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: cluster.FieldManager})
	if apierrors.IsNotFound(err) {
		holder, seconds := "drover", int32(leaseSeconds)
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{Label: labelValue},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}},
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{FieldManager: cluster.FieldManager})
	}
	return h.cluster.Wrap("renew its Lease", err)
}
