package move

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/client"
	"drover/kube/cluster"
	"drover/pools"
)

const (
	drainTimeout = 5 * time.Minute // the default time limit of a drain
	maxPods      = 2000            // of a node, that one check evicts; kubelets run 110 by default
	maxNames     = 1024            // bytes of the names of a pod, and its UID
)

// drain evicts the pods of a Node that moves. Each call evicts those that are left,
// until none is left or the time limit is over. The API server refuses an eviction that
// would violate a PodDisruptionBudget. Pods of DaemonSets stay, since their controller
// would replace them, and so do static pods, which only their kubelet can delete.
func (o *Mover) drain(ctx context.Context, m *move, log *slog.Logger) error {
	if m.drained {
		return nil
	}
	if o.room().Acquire(ctx, 1) != nil {
		return nil
	}
	defer o.room().Release(1)
	client := o.Client()
	pods, err := o.podsOf(ctx, client, m.node)
	if err != nil {
		return o.Wrap("list the pods of the Node", err)
	}
	if m.deadline.IsZero() {
		limit := cmp.Or(o.Conf.Drain.Timeout.D(), drainTimeout)
		m.deadline = o.Now().Add(limit)
		log.Info("node moves: it is cordoned, and its pods are evicted", "pods", len(pods), "limit", limit)
	}
	if len(pods) == 0 {
		m.drained = true
		o.setStep(m, pools.MoveDrained, "waits for its machine to be booted")
		log.Info("node moves: it is drained, its next boot is in the other cluster")
		return nil
	}
	held, err := o.evictAll(ctx, client, pods, log)
	text := remaining(len(pods), held)
	if o.Now().Before(m.deadline) {
		o.setStep(m, pools.MoveDrains, "%s", text)
		return err
	}
	m.drained = true
	o.setStep(m, pools.MoveHeld, "%s", text)
	log.Warn("node moves: the time limit of its drain is over", "left", text)
	return nil
}

// room bounds the nodes that are drained at the same time.
func (o *Mover) room() *semaphore.Weighted {
	o.once.Do(func() { o.drains = semaphore.NewWeighted(maxDrains) })
	return o.drains
}

// remaining describes the pods that are left: their number, and those that a
// PodDisruptionBudget holds.
func remaining(pods int, held []string) string {
	text := fmt.Sprintf("%d pods left", pods)
	if pods == 1 {
		text = "1 pod left"
	}
	if len(held) > 0 {
		slices.Sort(held)
		text += "; held by a PodDisruptionBudget: " + strings.Join(held[:min(3, len(held))], ", ")
		if more := len(held) - 3; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

// podsOf returns the pods of a node that have to be evicted, without their content.
func (o *Mover) podsOf(ctx context.Context, client client.Interface, node string) (evict []*corev1.Pod, err error) {
	opts := metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
	err = cluster.EachPage(ctx, o.Cluster, client.CoreV1().Pods(metav1.NamespaceAll), opts, func(page []*corev1.Pod) {
		for _, p := range page {
			if evictable(p) && len(evict) < maxPods && len(p.Namespace)+len(p.Name)+len(p.UID) <= maxNames {
				evict = append(evict, reference(p))
			}
		}
	})
	return evict, err
}

// reference returns a pod with only what its eviction needs.
func reference(p *corev1.Pod) *corev1.Pod {
	r := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, DeletionTimestamp: p.DeletionTimestamp}}
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
		r.OwnerReferences = []metav1.OwnerReference{{Controller: owner.Controller}}
	}
	return r
}

// evictable reports whether a drain evicts a pod.
func evictable(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	switch {
	case p.Annotations[corev1.MirrorPodAnnotationKey] != "": // of a static pod
	case owner != nil && owner.Kind == "DaemonSet":
	case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed: // it has ended, and is deleted with its Node
	default:
		return true
	}
	return false
}

// evictAll requests the eviction of pods, and returns those that a budget holds. After
// an error it continues with the other pods, unless drover lacks the right.
func (o *Mover) evictAll(ctx context.Context, client client.Interface, pods []*corev1.Pod, log *slog.Logger) (held []string, err error) {
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue // it is being deleted
		}
		failed := evict(ctx, client, p)
		switch {
		case failed == nil:
			log.Info("pod evicted", "pod", p.Namespace+"/"+p.Name, "controller", metav1.GetControllerOf(p) != nil)
		case apierrors.IsTooManyRequests(failed):
			held = append(held, p.Namespace+"/"+p.Name)
		case apierrors.IsNotFound(failed), apierrors.IsConflict(failed): // deleted, or replaced by another pod of that name
		default:
			err = o.Wrap("evict pod "+p.Namespace+"/"+p.Name, failed)
			if apierrors.IsForbidden(failed) && !apierrors.HasStatusCause(failed, corev1.NamespaceTerminatingCause) || ctx.Err() != nil {
				return held, err // the others would fail, too
			}
		}
	}
	return held, err
}

func evict(ctx context.Context, client client.Interface, p *corev1.Pod) error {
	return client.CoreV1().Pods(p.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}},
	})
}
