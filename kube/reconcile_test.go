package kube_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/resolve"
)

// farm is the kube.Machines of a test: plans by name.
type farm struct {
	mu      sync.Mutex
	plans   map[string]*resolve.Plan
	renamed map[string]*resolve.Plan // by the previous name
}

func (f *farm) set(p *resolve.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans[p.Node] = p
}

func (f *farm) Named(node string) *resolve.Plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.plans[node]; p != nil {
		return p
	}
	return f.renamed[node]
}

// Booting returns false for the node "off" alone.
func (f *farm) Booting(node string) bool { return node != "off" }

func labeled(labels map[string]string) *resolve.Plan {
	return plan(func(p *resolve.Plan) { p.Labels = labels })
}

func TestRefresh(t *testing.T) {
	s, stuck := newAPIServer(t), newAPIServer(t)
	stuck.set("GET nodes", fail(500, "InternalError", "no leader"))
	c, log := newClusters(t, s.kubeconfig())
	c.Set([]pools.Cluster{{Name: "tenant-a", Kubeconfig: s.kubeconfig()}, {Name: "stuck", Kubeconfig: stuck.kubeconfig()}})
	f := &farm{plans: map[string]*resolve.Plan{}}
	c.Machines = f
	var mu sync.Mutex
	told := map[string]string{}
	c.OnReconcile = func(cluster string, changed int, err error) {
		mu.Lock()
		defer mu.Unlock()
		told[cluster] += fmt.Sprintf("%d %t,", changed, err == nil)
	}
	seen := func(cluster string) string { mu.Lock(); defer mu.Unlock(); return told[cluster] }
	for _, name := range []string{"m1c29", "unmarked", "elsewhere", "unknown", "broken"} {
		s.setNode(name, "u-"+name, "b1", corev1.ConditionTrue, beat(1))
		f.set(plan(func(p *resolve.Plan) { p.Node, p.Labels = name, map[string]string{"a": "b"} }))
	}
	s.edit("unmarked", func(n *corev1.Node) { n.Labels = nil })
	f.Named("elsewhere").Cluster = "stuck"
	f.Named("broken").Taints = []pools.Taint{{Key: "a", Effect: "Never"}}
	delete(f.plans, "unknown")

	c.Refresh()
	fixture.Eventually(t, "labeled", func() bool { return s.node("m1c29").Labels["a"] == "b" })
	fixture.Eventually(t, "told", func() bool { return seen("tenant-a") == "1 true," && strings.HasPrefix(seen("stuck"), "0 false,") })
	for _, name := range []string{"unmarked", "elsewhere", "unknown", "broken"} {
		if got := s.node(name).Labels["a"]; got != "" {
			t.Errorf("node %q has a label", name)
		}
	}
	if !strings.Contains(log.String(), `effect \"Never\" is not`) {
		t.Errorf("log: %s", log)
	}

	// Another client writes the Node at the same time.
	f.set(labeled(map[string]string{"a": "c"}))
	once := sync.OnceFunc(func() { s.edit("m1c29", func(n *corev1.Node) { n.Labels["person"] = "me" }) })
	s.mu.Lock()
	s.onPatch = once
	s.mu.Unlock()
	c.Refresh()
	fixture.Eventually(t, "labeled anew", func() bool { l := s.node("m1c29").Labels; return l["a"] == "c" && l["person"] == "me" })

	f.set(labeled(nil))
	c.Refresh()
	fixture.Eventually(t, "label removed", func() bool { _, ok := s.node("m1c29").Labels["a"]; return !ok })

	// The broken cluster recovers, and is reconciled.
	stuck.setNode("elsewhere", "u", "b1", corev1.ConditionTrue, beat(1))
	stuck.set("GET nodes", nil)
	fixture.Eventually(t, "the other cluster too", func() bool { return stuck.node("elsewhere").Labels["a"] == "b" })
}

// The farm changes while a node boots.
func TestReadyUsesTheFarmInForce(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	f := &farm{plans: map[string]*resolve.Plan{}}
	c.Machines = f
	ready := make(chan bool, 1)
	c.OnReady = func(*resolve.Plan, time.Time) { ready <- true }
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

// The server is restarted while it waits for a node to be Ready.
func TestResume(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	ready := make(chan *resolve.Plan, 10)
	c.OnReady = func(p *resolve.Plan, _ time.Time) { ready <- p }
	s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
	p := labeled(map[string]string{"a": "b"})
	if err := c.Resume(p, "b2"); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "watched", func() bool { return s.count("WATCH nodes") > 0 })
	select {
	case <-ready:
		t.Fatal("the previous boot is taken for this one")
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
	for _, bad := range []error{c.Resume(p, ""), c.Resume(plan(func(p *resolve.Plan) { p.Cluster = "b" }), "b2")} {
		if bad == nil {
			t.Error("resumed an unknown node")
		}
	}
}
