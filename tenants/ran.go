package tenants

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drover/tenants/manifests"
)

// Annotations that say what a tenant's data have seen. They are on the Secrets of its CA and
// of its certificates, and on its StatefulSet: no backup of one of them, restored later, makes
// an older version open newer data. The newest Kubernetes whose API server has answered is
// [manifests.VersionNote] of the Secrets, and ranNote of the StatefulSet, where the other one
// is the version of its pods.
const (
	ranNote  = "drover.dev/ran"
	etcdNote = "drover.dev/etcd" // the newest etcd that has opened the data
)

// findRan finds out the newest versions of Kubernetes and etcd that have run, and notes them.
func (w *worker) findRan(ctx context.Context, k *keys) error {
	pods, err := w.controller.typed().CoreV1().Pods(w.plane.Namespace).List(ctx, w.ofPods())
	if err != nil {
		return err
	}
	version, etcd := "", ""
	for _, secret := range []*corev1.Secret{k.secret, k.leaf} {
		if secret != nil {
			version, etcd = newer(version, secret.Annotations[manifests.VersionNote]), manifests.NewerEtcd(etcd, secret.Annotations[etcdNote])
		}
	}
	if w.set != nil {
		version, etcd = newer(version, w.set.Annotations[ranNote]), manifests.NewerEtcd(etcd, w.set.Annotations[etcdNote])
	}
	for i := range pods.Items {
		version = newer(version, versionIn(&pods.Items[i], "kube-apiserver", answers))
		etcd = manifests.NewerEtcd(etcd, versionIn(&pods.Items[i], "etcd", begun))
	}
	w.ran, w.plane.Etcd = version, etcd
	return w.noteRan(ctx, k)
}

// noteRan notes what has run, but on the Secret of the certificates: see [worker.renew].
func (w *worker) noteRan(ctx context.Context, k *keys) error {
	of := map[string]string{manifests.VersionNote: w.ran, etcdNote: w.plane.Etcd}
	if err := w.note(ctx, k, of); err != nil {
		return err
	}
	return w.noteSet(ctx, map[string]string{ranNote: w.ran, etcdNote: w.plane.Etcd})
}

// versionIn returns the tag of a container's image in a pod if that has run, or "".
func versionIn(pod *corev1.Pod, name string, ran func(*corev1.ContainerStatus) bool) string {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name != name || !ran(&s) {
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

// begun reports whether the program of a container has run, for however short a time.
func begun(s *corev1.ContainerStatus) bool {
	ran := func(s corev1.ContainerState) bool {
		return s.Running != nil || s.Terminated != nil && s.Terminated.Reason != "StartError"
	}
	return ran(s.State) || ran(s.LastTerminationState)
}

// answers reports whether the program of a container has answered its probes. One that ends
// before, such as an API server with a wrong flag, can be replaced by an older one.
func answers(s *corev1.ContainerStatus) bool {
	return s.State.Running != nil && (s.Ready || s.Started != nil && *s.Started)
}
