package externalhost

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
)

const (
	// Label is the label of the Nodes of hosts outside the cluster, and the key of their
	// taints. The policies of deploy/hosts-rbac.yaml let drover make no other Nodes.
	Label = "drover/external-host"
	// Namespace is the namespace of the ServiceAccounts of hosts.
	Namespace = "drover-hosts"

	labelValue     = "true"
	publicIP       = "flannel.alpha.coreos.com/public-ip-overwrite"
	flannelBackend = "flannel.alpha.coreos.com/backend-data"
	occupiedAt     = "drover/occupied-at"
)

// object returns the Node of a host that does not exist yet. It has no label
// kubernetes.io/os, which the DaemonSets of kube-proxy, CNIs and log collectors select
// nodes by, and no room for pods: a DaemonSet that tolerates all taints and selects
// nothing makes a pod that stays Pending.
func object(cluster string, h pools.ExternalHost, podCIDR netip.Prefix, now time.Time) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: h.Name, Labels: labels(h), Annotations: annotations(h)},
		Spec: corev1.NodeSpec{
			PodCIDR: podCIDR.String(), PodCIDRs: []string{podCIDR.String()}, ProviderID: "drover://" + cluster + "/" + h.Name,
			Unschedulable: true, Taints: taints(),
		},
	}
	n.Status = status(h, now)
	return n
}

func labels(h pools.ExternalHost) map[string]string {
	return map[string]string{
		Label: labelValue, corev1.LabelHostname: h.Name, corev1.LabelNodeExcludeBalancers: "",
	}
}

func annotations(h pools.ExternalHost) map[string]string {
	if !h.Address.IsValid() {
		return nil
	}
	return map[string]string{publicIP: h.Address.String()}
}

func taints() []corev1.Taint {
	return []corev1.Taint{{Key: Label, Effect: corev1.TaintEffectNoSchedule}, {Key: Label, Effect: corev1.TaintEffectNoExecute}}
}

// status returns the status of a Node that has no kubelet to write it. kube-proxy needs
// the addresses; without Ready the cluster would count it as dead.
func status(h pools.ExternalHost, now time.Time) corev1.NodeStatus {
	at := metav1.NewTime(now)
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0"), corev1.ResourceCPU: resource.MustParse("0"), corev1.ResourceMemory: resource.MustParse("0")}
	s := corev1.NodeStatus{
		Capacity: none, Allocatable: none,
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "ExternalHost", LastHeartbeatTime: at, LastTransitionTime: at,
			Message: "drover keeps this Node for a host outside the cluster; it has no kubelet",
		}},
	}
	if h.Address.IsValid() {
		s.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: h.Address.String()}, {Type: corev1.NodeHostName, Address: h.Name}}
	}
	return s
}

// metaPatch returns a patch that gives a Node back what it lacks of metadata and spec, or
// nil. What others have put on stays.
func metaPatch(n *corev1.Node, h pools.ExternalHost) []byte {
	meta, spec := map[string]any{}, map[string]any{}
	if !includes(n.Labels, labels(h)) {
		meta["labels"] = labels(h)
	}
	if !includes(n.Annotations, annotations(h)) {
		meta["annotations"] = annotations(h)
	}
	if !n.Spec.Unschedulable {
		spec["unschedulable"] = true
	}
	all := n.Spec.Taints
	for _, t := range taints() {
		if !slices.ContainsFunc(all, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
			all = append(slices.Clip(all), t)
		}
	}
	if len(all) != len(n.Spec.Taints) {
		spec["taints"] = all
	}
	if len(meta)+len(spec) == 0 {
		return nil
	}
	// A list is replaced as a whole: the resourceVersion keeps taints that others put on
	// in the meantime.
	meta["resourceVersion"] = n.ResourceVersion
	patch, _ := json.Marshal(map[string]any{"metadata": meta, "spec": spec}) // it has maps of text and taints alone
	return patch
}

// statusPatch returns a patch that gives a Node its addresses, and Ready, or nil.
func statusPatch(n *corev1.Node, h pools.ExternalHost, now time.Time) []byte {
	want := status(h, now)
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if ready && slices.Equal(n.Status.Addresses, want.Addresses) {
		return nil
	}
	patch, _ := json.Marshal(map[string]any{"status": map[string]any{"addresses": want.Addresses, "conditions": want.Conditions}})
	return patch
}

func includes(have, want map[string]string) bool {
	for k := range maps.Keys(want) {
		if v, ok := have[k]; !ok || v != want[k] {
			return false
		}
	}
	return true
}

// podCIDRs returns the networks of a Node that are valid.
func podCIDRs(n *corev1.Node) (all []netip.Prefix) {
	for _, text := range append(n.Spec.PodCIDRs, n.Spec.PodCIDR) {
		if p, err := netip.ParsePrefix(text); err == nil && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
