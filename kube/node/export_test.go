package node

import (
	corev1 "k8s.io/api/core/v1"

	"drover/pools/resolve"
)

// Changes returns the patch that gives a Node the labels and taints of a Plan.
func Changes(p *resolve.Plan, n *corev1.Node, key []byte) (string, error) {
	reg, err := Settings(p)
	if err != nil {
		return "", err
	}
	patch, err := reg.changes(n, key, Applied{})
	return string(patch), err
}
