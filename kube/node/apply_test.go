package node_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/node"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	noSchedule = corev1.TaintEffectNoSchedule
	noExecute  = corev1.TaintEffectNoExecute
)

// applied applies the changes for settings to a Node, and returns their patch; "" if there
// are none.
func applied(t *testing.T, n *corev1.Node, key string, set resolve.Settings) (patch string) {
	t.Helper()
	patch, err := node.Changes(&resolve.Plan{Node: n.Name, Settings: set}, n, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	if patch == "" {
		return ""
	}
	var object, p map[string]any
	text, _ := json.Marshal(n)
	if json.Unmarshal(text, &object) != nil || json.Unmarshal([]byte(patch), &p) != nil {
		t.Fatal(patch)
	}
	merge(object, p)
	text, _ = json.Marshal(object)
	*n = corev1.Node{}
	if err := json.Unmarshal(text, n); err != nil {
		t.Fatal(err)
	}
	return patch
}

// A tag is edited while its nodes run.
func TestApply(t *testing.T) {
	added := metav1.Unix(1_800_000_000, 0)
	foreign := corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: noExecute, TimeAdded: &added}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u1", ResourceVersion: "5", Labels: map[string]string{"drover/managed": "true", "person": "me"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{foreign}},
	}
	check := func(labels map[string]string, taints ...corev1.Taint) {
		t.Helper()
		want := map[string]string{"drover/managed": "true", "person": "me"}
		maps.Copy(want, labels)
		if !reflect.DeepEqual(n.Labels, want) {
			t.Errorf("labels %v, want %v", n.Labels, want)
		}
		if len(n.Spec.Taints) != len(taints) || !slices.EqualFunc(n.Spec.Taints, taints, func(a, b corev1.Taint) bool { return a.ToString() == b.ToString() }) {
			t.Errorf("taints %v, want %v", n.Spec.Taints, taints)
		}
	}
	foo := pools.Taint{Key: "foo", Value: "bar", Effect: "NoSchedule"}

	t.Run("given", func(t *testing.T) {
		patch := applied(t, n, "k", resolve.Settings{Labels: map[string]string{"pool": "web", "node-role.kubernetes.io/web": ""}, Taints: []pools.Taint{foo}})
		check(map[string]string{"pool": "web", "node-role.kubernetes.io/web": ""}, foreign, corev1.Taint{Key: "foo", Value: "bar", Effect: noSchedule})
		if !strings.Contains(patch, `"resourceVersion":"5"`) || !strings.Contains(patch, `"uid":"u1"`) {
			t.Errorf("patch %s holds for any version", patch)
		}
		if n.Spec.Taints[0].TimeAdded == nil {
			t.Error("the time of a foreign taint is gone")
		}
	})
	t.Run("the same again is no change", func(t *testing.T) {
		if patch := applied(t, n, "k", resolve.Settings{Labels: map[string]string{"pool": "web", "node-role.kubernetes.io/web": ""}, Taints: []pools.Taint{foo}}); patch != "" {
			t.Errorf("patch %s", patch)
		}
	})
	t.Run("changed and removed", func(t *testing.T) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "quarantine", Effect: noExecute})
		foo := pools.Taint{Key: "foo", Value: "baz", Effect: "NoSchedule"}
		applied(t, n, "k", resolve.Settings{Labels: map[string]string{"pool": "db"}, Taints: []pools.Taint{foo}})
		check(map[string]string{"pool": "db"}, foreign, corev1.Taint{Key: "foo", Value: "baz", Effect: noSchedule}, corev1.Taint{Key: "quarantine", Effect: noExecute})
	})
	t.Run("no labels and taints left", func(t *testing.T) {
		applied(t, n, "k", resolve.Settings{})
		check(nil, foreign, corev1.Taint{Key: "quarantine", Effect: noExecute})
	})
}

// An intruder on a node writes the annotations of its Node, so that drover removes
// labels and taints of an administrator.
func TestForgedAnnotations(t *testing.T) {
	forge := func(n *corev1.Node) {
		n.Annotations["drover/labels"] = "free,x.node-restriction.kubernetes.io/tier,node-role.kubernetes.io/web,drover/managed"
		n.Annotations["drover/taints"] = "quarantine:NoExecute"
	}
	fresh := func() *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u1", Labels: map[string]string{
			"drover/managed": "true", "free": "x", "x.node-restriction.kubernetes.io/tier": "low", "node-role.kubernetes.io/web": "",
		}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "quarantine", Effect: noExecute}}}}
		return n
	}
	tests := []struct {
		name string
		do   func(t *testing.T, n *corev1.Node)
	}{
		{"the seal as it was", func(t *testing.T, n *corev1.Node) { applied(t, n, "k", resolve.Settings{}); forge(n) }},
		{"another's seal", func(t *testing.T, n *corev1.Node) {
			m := fresh()
			m.UID = "u2"
			delete(m.Labels, "drover/managed")
			applied(t, m, "k", resolve.Settings{Labels: m.Labels, Taints: []pools.Taint{{Key: "quarantine", Effect: "NoExecute"}}})
			n.Annotations = m.Annotations
		}},
		{"a seal with another key", func(t *testing.T, n *corev1.Node) { applied(t, n, "other", resolve.Settings{}); forge(n) }},
		{"no seal", func(_ *testing.T, n *corev1.Node) { n.Annotations = map[string]string{}; forge(n) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := fresh()
			tt.do(t, n)
			applied(t, n, "k", resolve.Settings{})
			for _, key := range []string{"drover/managed", "x.node-restriction.kubernetes.io/tier", "node-role.kubernetes.io/web"} {
				if _, ok := n.Labels[key]; !ok {
					t.Errorf("label %q is gone", key)
				}
			}
			if len(n.Spec.Taints) != 1 {
				t.Errorf("taints %v, want the quarantine", n.Spec.Taints)
			}
		})
	}
}

// merge applies a merge patch (RFC 7386).
func merge(object, patch map[string]any) {
	for k, v := range patch {
		into, _ := object[k].(map[string]any)
		switch v := v.(type) {
		case nil:
			delete(object, k)
		case map[string]any:
			if into == nil {
				into = map[string]any{}
				object[k] = into
			}
			merge(into, v)
		default:
			object[k] = v
		}
	}
}
