package tenants

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
)

// Unreachable returns the reason why a version cannot follow another.
var Unreachable = unreachable

// Older reports whether a version is before another, and Newer returns the newer one.
var (
	Older = older
	Newer = newer
)

// Unassigned returns why an endpoint may not lead to its Service, or "".
var Unassigned = unassigned

// Answered and Opened return the versions of the API server and the etcd that have run in a
// pod.
func Answered(pod *corev1.Pod) string { return versionIn(pod, "kube-apiserver", answers) }

// Opened is described at Answered.
func Opened(pod *corev1.Pod) string { return versionIn(pod, "etcd", begun) }

// PolicyOf returns what remains of a tenant by what was declared last, and by the annotations
// of its Secret.
func PolicyOf(declared pools.DeletionPolicy, noted map[string]string) pools.DeletionPolicy {
	c := &Controller{policies: map[string]pools.DeletionPolicy{"a": declared}}
	return c.policy("a", &remains{secrets: []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Annotations: noted}}}})
}

// Pauses returns the pauses between rounds that find states at times.
func Pauses(first time.Duration, states []string, at []time.Duration) (all []time.Duration) {
	var p pause
	for i, s := range states {
		all = append(all, p.next(time.Unix(0, 0).Add(at[i]), s, first))
	}
	return all
}

// Detail returns why a program is not ready.
func Detail(s *corev1.ContainerStatus) string { return detail(s) }
