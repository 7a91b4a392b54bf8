package inspect_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/inspect"
)

// TestCollisions: names of the config that a Node has which drover does not own.
func TestCollisions(t *testing.T) {
	made := func(name string, labels map[string]string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"drover/seal": "00"}}}
	}
	all := []corev1.Node{
		made("cp1", map[string]string{"node-role.kubernetes.io/control-plane": "", "drover/managed": "true"}),
		made("cp2", map[string]string{"node-role.kubernetes.io/control-plane": ""}),
		made("old", nil), made("mine", map[string]string{"drover/managed": "true"}), made("other", nil),
	}
	got := inspect.Collisions(all, []string{"cp1", "old", "mine", "new"})
	want := []string{
		"the Node cp1 is a control-plane host, whose certificate no other machine may have; give the machine another name",
		"drover did not make the Node old; give the machine another name, or, if it is that machine: kubectl label node old drover/managed=true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
