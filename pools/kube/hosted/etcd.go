package hosted

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools/kube/hosted/manifests"
)

// etcdNote is the annotation with the newest version of etcd that has opened a tenant's data.
const etcdNote = "drover.dev/etcd"

// chooseEtcd keeps etcd from going back: an older one does not open what a newer one has
// written, also when the version of Kubernetes that it came with never answered and was
// taken back.
func (w *worker) chooseEtcd(ctx context.Context, k *keys) error {
	opts := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: w.plane.Selector()})}
	pods, err := w.controller.typed.CoreV1().Pods(w.plane.Namespace).List(ctx, opts)
	if err != nil {
		return err
	}
	w.plane.Etcd = k.secret.Annotations[etcdNote]
	for _, pod := range pods.Items {
		w.plane.Etcd = manifests.NewerEtcd(w.plane.Etcd, etcdOf(&pod))
	}
	if w.plane.Etcd == "" {
		return nil // it never ran
	}
	return w.note(ctx, k, map[string]string{etcdNote: w.plane.Etcd})
}

// etcdOf returns the version of the etcd that has run in a pod, or "".
func etcdOf(pod *corev1.Pod) string {
	const name = "etcd"
	ran := func(s corev1.ContainerState) bool {
		return s.Running != nil || s.Terminated != nil && s.Terminated.Reason != "StartError"
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name != name || !ran(s.State) && !ran(s.LastTerminationState) {
			continue
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if c.Name == name {
				return c.Image[strings.LastIndex(c.Image, ":")+1:]
			}
		}
	}
	return ""
}
