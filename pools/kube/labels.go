package kube

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// KubeletMaySet tells whether a kubelet may give its own Node the label with
// that key. A kubelet that is told to set another one ends at once, and the
// NodeRestriction admission plugin refuses it: such labels are for the control
// plane to set.
//
// Labels outside of kubernetes.io and k8s.io are all free. Of those inside, the
// namespaces kubelet.kubernetes.io and node.kubernetes.io are, and a fixed list.
// (k8s.io/kubelet/pkg/apis, well_known_labels.go)
func KubeletMaySet(label string) bool {
	namespace, _, ok := strings.Cut(label, "/")
	if !ok || !within(namespace, "kubernetes.io", "k8s.io") {
		return true
	}
	return within(namespace, "kubelet.kubernetes.io", "node.kubernetes.io") || slices.Contains([]string{
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
		"topology.kubernetes.io/zone", "topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
		"beta.kubernetes.io/instance-type", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	}, label)
}

// within tells whether a domain is one of others, or below one.
func within(domain string, others ...string) bool {
	return slices.ContainsFunc(others, func(o string) bool { return domain == o || strings.HasSuffix(domain, "."+o) })
}

func checkLabel(key, value string) error {
	if key == markLabel {
		return fmt.Errorf("label %q is drover's own mark of the Nodes that it made", key)
	}
	if errs := validation.IsQualifiedName(key); len(errs) > 0 {
		return fmt.Errorf("label %q: %s", key, strings.Join(errs, "; "))
	}
	if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
		return fmt.Errorf("label %q: value %q: %s", key, value, strings.Join(errs, "; "))
	}
	return nil
}
