package node_test

import (
	"testing"

	"drover/kube/node"
)

func TestKubeletMaySet(t *testing.T) {
	tests := map[string]bool{
		"label1":                                 true,
		"example.org/rack":                       true,
		"notkubernetes.io/x":                     true,
		"kubernetes.io/hostname":                 true,
		"topology.kubernetes.io/zone":            true,
		"node.kubernetes.io/instance-type":       true,
		"node.kubernetes.io/anything":            true,
		"sub.node.kubernetes.io/x":               true,
		"kubelet.kubernetes.io/x":                true,
		"kubernetes.io/role":                     false,
		"node-role.kubernetes.io/worker":         false,
		"node-role.kubernetes.io/control-plane":  false,
		"node-restriction.kubernetes.io/x":       false,
		"sub.node-restriction.kubernetes.io/x":   false,
		"k8s.io/x":                               false,
		"cloud.k8s.io/x":                         false,
		"x-node.kubernetes.io/x":                 false,
		"feature.node.kubernetes.io/cpu-feature": true,
	}
	for label, want := range tests {
		if got := node.KubeletMaySet(label); got != want {
			t.Errorf("KubeletMaySet(%q) is %v, want %v", label, got, want)
		}
	}
}
