package kube_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
	"drover/pools/kube"
)

const (
	noSchedule = corev1.TaintEffectNoSchedule
	noExecute  = corev1.TaintEffectNoExecute
)

// tended applies the changes for settings to a Node; it may take several steps.
func tended(t *testing.T, n *corev1.Node, key string, set pools.Settings) (patch string) {
	t.Helper()
	patch, err := kube.Changes(&pools.Plan{Node: n.Name, Settings: set}, n, []byte(key))
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
func TestTending(t *testing.T) {
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
		patch := tended(t, n, "k", pools.Settings{Labels: map[string]string{"pool": "web", "node-role.kubernetes.io/web": ""}, Taints: []pools.Taint{foo}})
		check(map[string]string{"pool": "web", "node-role.kubernetes.io/web": ""}, foreign, corev1.Taint{Key: "foo", Value: "bar", Effect: noSchedule})
		if !strings.Contains(patch, `"resourceVersion":"5"`) || !strings.Contains(patch, `"uid":"u1"`) {
			t.Errorf("patch %s holds for any version", patch)
		}
		if n.Spec.Taints[0].TimeAdded == nil {
			t.Error("the time of another's taint is gone")
		}
	})
	t.Run("the same again is no change", func(t *testing.T) {
		if patch := tended(t, n, "k", pools.Settings{Labels: map[string]string{"pool": "web", "node-role.kubernetes.io/web": ""}, Taints: []pools.Taint{foo}}); patch != "" {
			t.Errorf("patch %s", patch)
		}
	})
	t.Run("changed and removed", func(t *testing.T) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "quarantine", Effect: noExecute})
		foo := pools.Taint{Key: "foo", Value: "baz", Effect: "NoSchedule"}
		tended(t, n, "k", pools.Settings{Labels: map[string]string{"pool": "db"}, Taints: []pools.Taint{foo}})
		check(map[string]string{"pool": "db"}, foreign, corev1.Taint{Key: "foo", Value: "baz", Effect: noSchedule}, corev1.Taint{Key: "quarantine", Effect: noExecute})
	})
	t.Run("nothing asked for any more", func(t *testing.T) {
		tended(t, n, "k", pools.Settings{})
		check(nil, foreign, corev1.Taint{Key: "quarantine", Effect: noExecute})
	})
}

// A node that was broken into writes its own annotations, so that drover takes
// off what an administrator put on it and what a kubelet may not touch.
func TestForgedNote(t *testing.T) {
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
		{"the seal as it was", func(t *testing.T, n *corev1.Node) { tended(t, n, "k", pools.Settings{}); forge(n) }},
		{"another's seal", func(t *testing.T, n *corev1.Node) {
			m := fresh()
			m.UID = "u2"
			delete(m.Labels, "drover/managed")
			tended(t, m, "k", pools.Settings{Labels: m.Labels, Taints: []pools.Taint{{Key: "quarantine", Effect: "NoExecute"}}})
			n.Annotations = m.Annotations
		}},
		{"a seal with another key", func(t *testing.T, n *corev1.Node) { tended(t, n, "other", pools.Settings{}); forge(n) }},
		{"no seal", func(_ *testing.T, n *corev1.Node) { n.Annotations = map[string]string{}; forge(n) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := fresh()
			tt.do(t, n)
			tended(t, n, "k", pools.Settings{})
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

// farm is what the operator edits.
type farm struct {
	mu    sync.Mutex
	plans map[string]*pools.Plan
}

func (f *farm) set(p *pools.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans[p.Node] = p
}

func (f *farm) plan(node string) *pools.Plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.plans[node]
}

func labeled(labels map[string]string) *pools.Plan {
	return plan(func(p *pools.Plan) { p.Labels = labels })
}

func TestRefresh(t *testing.T) {
	s, stuck := newAPIServer(t), newAPIServer(t)
	stuck.set("GET nodes", fail(500, "InternalError", "no leader"))
	c, log := newClusters(t, s.kubeconfig())
	c.Set([]pools.Cluster{{Name: "tenant-a", Kubeconfig: s.kubeconfig()}, {Name: "stuck", Kubeconfig: stuck.kubeconfig()}})
	f := &farm{plans: map[string]*pools.Plan{}}
	c.PlanOf = f.plan
	var mu sync.Mutex
	told := map[string]string{}
	c.OnTend = func(cluster string, changed int, err error) {
		mu.Lock()
		defer mu.Unlock()
		told[cluster] += fmt.Sprintf("%d %t,", changed, err == nil)
	}
	seen := func(cluster string) string { mu.Lock(); defer mu.Unlock(); return told[cluster] }
	for _, name := range []string{"m1c29", "unmarked", "elsewhere", "unknown", "broken"} {
		s.setNode(name, "u-"+name, "b1", corev1.ConditionTrue, beat(1))
		f.set(plan(func(p *pools.Plan) { p.Node, p.Labels = name, map[string]string{"a": "b"} }))
	}
	s.edit("unmarked", func(n *corev1.Node) { n.Labels = nil })
	f.plan("elsewhere").Cluster = "stuck"
	f.plan("broken").Taints = []pools.Taint{{Key: "a", Effect: "Never"}}
	delete(f.plans, "unknown")

	c.Refresh()
	eventually(t, "labeled", func() bool { return s.node("m1c29").Labels["a"] == "b" })
	eventually(t, "told", func() bool { return seen("tenant-a") == "1 true," && strings.HasPrefix(seen("stuck"), "0 false,") })
	for _, name := range []string{"unmarked", "elsewhere", "unknown", "broken"} {
		if got := s.node(name).Labels["a"]; got != "" {
			t.Errorf("node %q has a label", name)
		}
	}
	if !strings.Contains(log.String(), `effect \"Never\" is not`) {
		t.Errorf("log: %s", log)
	}

	// Somebody else writes the Node at the same time.
	f.set(labeled(map[string]string{"a": "c"}))
	once := sync.OnceFunc(func() { s.edit("m1c29", func(n *corev1.Node) { n.Labels["person"] = "me" }) })
	s.mu.Lock()
	s.onPatch = once
	s.mu.Unlock()
	c.Refresh()
	eventually(t, "labeled anew", func() bool { l := s.node("m1c29").Labels; return l["a"] == "c" && l["person"] == "me" })

	f.set(labeled(nil))
	c.Refresh()
	eventually(t, "label removed", func() bool { _, ok := s.node("m1c29").Labels["a"]; return !ok })

	// The broken cluster gets well, and does what was asked for.
	stuck.setNode("elsewhere", "u", "b1", corev1.ConditionTrue, beat(1))
	stuck.set("GET nodes", nil)
	eventually(t, "the other cluster too", func() bool { return stuck.node("elsewhere").Labels["a"] == "b" })
}

// The farm changes while a node boots.
func TestReadyTakesTheFarmAsItIs(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	f := &farm{plans: map[string]*pools.Plan{}}
	c.PlanOf = f.plan
	ready := make(chan bool, 1)
	c.OnReady = func(*pools.Plan, time.Time) { ready <- true }
	if _, err := c.Join(t.Context(), labeled(map[string]string{"old": "x", "both": "1"}), addr(), "b1"); err != nil {
		t.Fatal(err)
	}
	f.set(labeled(map[string]string{"new": "x", "both": "2"}))
	s.setNode("m1c29", "u1", "b1", corev1.ConditionFalse, beat(1))
	s.edit("m1c29", func(n *corev1.Node) { n.Labels["old"], n.Labels["both"] = "x", "1" }) // as its kubelet registers
	s.edit("m1c29", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue })
	<-ready
	want := map[string]string{"drover/managed": "true", "new": "x", "both": "2"}
	if got := s.node("m1c29").Labels; !reflect.DeepEqual(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}

// The server was started anew while a node was on its way to Ready.
func TestResume(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	ready := make(chan *pools.Plan, 10)
	c.OnReady = func(p *pools.Plan, _ time.Time) { ready <- p }
	s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
	p := labeled(map[string]string{"a": "b"})
	if err := c.Resume(p, "b2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "watched", func() bool { return s.count("WATCH nodes") > 0 })
	select {
	case <-ready:
		t.Fatal("the boot before is taken for this one")
	case <-time.After(20 * time.Millisecond):
	}
	s.setNode("m1c29", "u2", "b2", corev1.ConditionTrue, beat(2))
	if got := <-ready; got != p {
		t.Errorf("another Plan is Ready: %+v", got)
	}
	if got := s.node("m1c29").Labels["a"]; got != "b" || s.count("DELETE secrets") != 0 {
		t.Errorf("label %q, %d tokens deleted", got, s.count("DELETE secrets"))
	}
	// Ready already when the server comes back.
	if err := c.Resume(p, "b2"); err != nil {
		t.Fatal(err)
	}
	<-ready
	for _, bad := range []error{c.Resume(p, ""), c.Resume(plan(func(p *pools.Plan) { p.Cluster = "b" }), "b2")} {
		if bad == nil {
			t.Error("resumed what is not known")
		}
	}
}
