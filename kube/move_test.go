package kube_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// run binds a pod to a node.
func (s *apiServer) run(node, name string, edit ...func(*corev1.Pod)) {
	p := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("u-" + name)},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	for _, e := range edit {
		e(&p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[name] = p
}

func (s *apiServer) getPods(w http.ResponseWriter, r *http.Request) {
	node, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")
	if !ok {
		s.t.Errorf("drover asked for more pods than those of one node: %s", r.URL)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, p := range s.pods {
		if p.Spec.NodeName == node {
			list.Items = append(list.Items, p)
		}
	}
	s.send(w, 200, list)
}

// evict removes a pod at once, unless a budget holds it.
func (s *apiServer) evict(w http.ResponseWriter, r *http.Request, name string) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.pods[name]
	switch {
	case !strings.HasSuffix(r.URL.Path, "/eviction"):
		s.t.Errorf("drover asked for %s %s", r.Method, r.URL)
	case !ok:
		fail(404, "NotFound", "pods not found")(w, nil)
	case !strings.Contains(string(body), string(p.UID)):
		fail(409, "Conflict", "the UID in the precondition does not match")(w, nil)
	case s.held[name]:
		fail(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")(w, nil)
	default:
		delete(s.pods, name)
		s.evicted = append(s.evicted, name)
		s.send(w, 201, metav1.Status{Status: metav1.StatusSuccess})
	}
}

// hold makes a PodDisruptionBudget hold a pod, or release it.
func (s *apiServer) hold(name string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = held
}

// ended returns the names of the evicted pods, sorted.
func (s *apiServer) ended() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.evicted))
}

func (s *apiServer) renew(node, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[node] = version
}

// twoTenants has two tenants and a farm whose node m1c29 runs in the first.
type twoTenants struct {
	*kube.Clusters
	a, b  *apiServer
	farm  *farm
	clock *clock
	log   *fixture.Log
	conf  []pools.Cluster
}

func newTwoTenants(t *testing.T, edit ...func(*kube.Clusters, []pools.Cluster)) *twoTenants {
	p := &twoTenants{a: newAPIServer(t), b: newAPIServer(t), farm: &farm{plans: map[string]*resolve.Plan{}}, clock: new(clock), log: new(fixture.Log)}
	p.conf = []pools.Cluster{{Name: "tenant-a", Kubeconfig: p.a.kubeconfig()}, {Name: "tenant-b", Kubeconfig: p.b.kubeconfig()}}
	p.Clusters = p.server(edit...)
	t.Cleanup(func() { p.Close() })
	p.a.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
	p.a.renew("m1c29", "1")
	p.farm.set(plan())
	p.Refresh()
	fixture.Eventually(t, "sealed", func() bool { return p.a.node("m1c29").Annotations["drover/seal"] != "" })
	return p
}

// server starts a Clusters with both tenants.
func (p *twoTenants) server(edit ...func(*kube.Clusters, []pools.Cluster)) *kube.Clusters {
	c := &kube.Clusters{
		Now: p.clock.now, DeadAfter: 10 * time.Second, MoveInterval: 2 * time.Millisecond, Key: []byte("the key of this drover"), Machines: p.farm,
		Log: slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, e := range edit {
		e(c, p.conf)
	}
	c.Set(p.conf)
	return c
}

// moveTo gives the node to another cluster.
func (p *twoTenants) moveTo(cluster string) {
	p.farm.set(plan(func(p *resolve.Plan) { p.Cluster = cluster }))
	p.Refresh()
}

// at waits until the move is at a step.
func (p *twoTenants) at(t *testing.T, step pools.MoveStep, detail string) {
	t.Helper()
	fixture.Eventually(t, fmt.Sprintf("%s, %q", step, detail), func() bool {
		m := p.Moves()
		return len(m) == 1 && m[0].Step == step && strings.Contains(m[0].Detail, detail)
	})
}

func daemon(p *corev1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
}

func static(p *corev1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"} }

func finished(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

// The farm gives a node to another cluster, and its machine boots some time later.
func TestMove(t *testing.T) {
	p := newTwoTenants(t)
	p.a.run("m1c29", "web")
	p.a.run("m1c29", "db")
	p.a.run("m1c29", "log-agent", daemon)
	p.a.run("m1c29", "static", static)
	p.a.run("m1c29", "job", finished)
	p.a.run("other", "elsewhere")
	p.a.hold("db", true)

	p.moveTo("tenant-b")
	p.at(t, pools.MoveDrains, "1 pod left; held by a PodDisruptionBudget: default/db")
	if got := p.a.ended(); !slices.Equal(got, []string{"web"}) {
		t.Errorf("evicted %q, want web alone", got)
	}
	if n := p.a.node("m1c29"); !n.Spec.Unschedulable {
		t.Error("it is not cordoned")
	}
	if m := p.Moves()[0]; m.From != "tenant-a" || m.To != "tenant-b" || m.As != "m1c29" || !strings.HasPrefix(m.Summary(), "moving from tenant-a to tenant-b: drains, 1 pod left") {
		t.Errorf("move %+v: %s", m, m.Summary())
	}
	p.a.hold("db", false)
	p.at(t, pools.MoveDrained, "waits for its machine to be booted")
	if got := p.a.ended(); !slices.Equal(got, []string{"db", "web"}) {
		t.Errorf("evicted %q", got)
	}

	// The machine boots: its kubelet in the first cluster becomes silent, and the
	// machine Ready in the second. While the kubelet renews its Lease, or the machine
	// is not Ready, the Node stays.
	gets := p.a.count("GET leases")
	p.clock.seconds.Add(60)
	p.a.renew("m1c29", "2")
	fixture.Eventually(t, "another check", func() bool { return p.a.count("GET leases") > gets+2 })
	p.clock.seconds.Add(20)
	gets = p.a.count("GET leases")
	fixture.Eventually(t, "another check", func() bool { return p.a.count("GET leases") > gets+2 })
	p.b.setNode("m1c29", "u2", "b2", corev1.ConditionFalse, beat(1))
	gets = p.b.count("GET nodes")
	fixture.Eventually(t, "looked for", func() bool { return p.b.count("GET nodes") > gets+2 })
	if p.a.node("m1c29").Name == "" {
		t.Fatal("the Node is gone before its machine is Ready elsewhere")
	}
	p.b.setNode("m1c29", "u2", "b2", corev1.ConditionTrue, beat(2))
	fixture.Eventually(t, "gone", func() bool { return p.a.node("m1c29").Name == "" && len(p.Moves()) == 0 })
	if got := p.b.node("m1c29"); got.Spec.Unschedulable {
		t.Error("the new Node is cordoned")
	}
}

// The machine stays off: its kubelet is silent for longer than OffAfter.
func TestMovedAndSwitchedOff(t *testing.T) {
	p := newTwoTenants(t)
	p.a.run("m1c29", "db")
	p.a.hold("db", true)
	p.moveTo("")
	p.at(t, pools.MoveDrains, "default/db")
	p.clock.seconds.Add(119)
	gets := p.a.count("GET leases")
	fixture.Eventually(t, "another check", func() bool { return p.a.count("GET leases") > gets+2 })
	if p.a.node("m1c29").Name == "" {
		t.Fatal("the Node is gone too early")
	}
	p.clock.seconds.Add(2)
	fixture.Eventually(t, "gone", func() bool { return p.a.node("m1c29").Name == "" && len(p.Moves()) == 0 })
}

// At the time limit a pod is still held. A change of the farm starts the drain again.
func TestDrainHasALimit(t *testing.T) {
	p := newTwoTenants(t, func(_ *kube.Clusters, conf []pools.Cluster) { conf[0].Drain.Timeout = pools.Duration(time.Minute) })
	p.a.run("m1c29", "db")
	p.a.hold("db", true)
	p.moveTo("tenant-b")
	p.at(t, pools.MoveDrains, "default/db")
	p.clock.seconds.Add(61)
	p.a.renew("m1c29", "2")
	p.at(t, pools.MoveHeld, "1 pod left; held by a PodDisruptionBudget: default/db")
	asked := p.a.count("POST pods")
	gets := p.a.count("GET leases")
	fixture.Eventually(t, "another check", func() bool { return p.a.count("GET leases") > gets+2 })
	if got := p.a.count("POST pods"); got != asked {
		t.Errorf("%d evictions after the limit", got-asked)
	}
	p.a.hold("db", false)
	p.Refresh()
	p.at(t, pools.MoveDrained, "")
}

// The operator moves a node back.
func TestMovedBack(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %t", restart), func(t *testing.T) {
			p := newTwoTenants(t)
			p.moveTo("tenant-b")
			p.at(t, pools.MoveDrained, "")
			if restart {
				p.Close()
				p.farm.set(plan())
				p.Clusters = p.server()
			}
			p.moveTo("tenant-a")
			fixture.Eventually(t, "uncordoned", func() bool {
				n := p.a.node("m1c29")
				return !n.Spec.Unschedulable && n.Annotations["drover/moving"] == "" && len(p.Moves()) == 0
			})
		})
	}
}

// drover is restarted in the middle of a move.
func TestMoveContinues(t *testing.T) {
	p := newTwoTenants(t)
	p.a.run("m1c29", "db")
	p.a.hold("db", true)
	p.moveTo("tenant-b")
	p.at(t, pools.MoveDrains, "default/db")
	p.Close()
	p.a.hold("db", false)
	p.Clusters = p.server()
	p.Refresh()
	p.at(t, pools.MoveDrained, "")
}

// Nodes that drover did not make stay as they are.
func TestOthersDoNotMove(t *testing.T) {
	tests := []struct {
		name   string
		node   func(n *corev1.Node)
		stays  bool // it is reported
		remove bool // from the farm
	}{
		{"no mark", func(n *corev1.Node) { n.Labels = nil }, false, false},
		{"no seal", func(n *corev1.Node) { n.Annotations = nil }, true, false},
		{"another drover's seal", func(n *corev1.Node) { n.Annotations["drover/seal"] = strings.Repeat("0", 64) }, true, false},
		{"in no config", func(*corev1.Node) {}, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newTwoTenants(t)
			p.a.run("m1c29", "web")
			p.a.edit("m1c29", tt.node)
			before := p.a.count("GET nodes")
			if tt.remove {
				p.farm.mu.Lock()
				delete(p.farm.plans, "m1c29")
				p.farm.mu.Unlock()
				p.Refresh()
			} else {
				p.moveTo("tenant-b")
			}
			if tt.stays {
				p.at(t, pools.MoveStays, "drain and delete it by hand")
			}
			fixture.Eventually(t, "another check", func() bool { return p.a.count("GET nodes") > before })
			p.clock.seconds.Add(3600)
			fixture.Eventually(t, "the log", func() bool {
				return !tt.stays && !tt.remove || strings.Contains(p.log.String(), "stays: drover cannot prove") || strings.Contains(p.log.String(), "Nodes that drover made stay in the cluster")
			})
			n := p.a.node("m1c29")
			if n.Name == "" || n.Spec.Unschedulable || p.a.count("POST pods") > 0 || p.a.count("DELETE nodes") > 0 {
				t.Errorf("Node %q, cordoned %t, %d evictions", n.Name, n.Spec.Unschedulable, p.a.count("POST pods"))
			}
		})
	}
}

// Another client writes the Node while drover uncordons it.
func TestUncordonConflict(t *testing.T) {
	p := newTwoTenants(t)
	p.moveTo("tenant-b")
	p.at(t, pools.MoveDrained, "")
	p.a.mu.Lock()
	p.a.onPatch = sync.OnceFunc(func() { p.a.edit("m1c29", func(n *corev1.Node) { n.Labels["person"] = "me" }) })
	p.a.mu.Unlock()
	p.moveTo("tenant-a")
	fixture.Eventually(t, "uncordoned", func() bool {
		n := p.a.node("m1c29")
		return !n.Spec.Unschedulable && n.Labels["person"] == "me" && len(p.Moves()) == 0
	})
}

// A Node that another client has cordoned stays cordoned when the farm gives it back.
func TestForeignCordonStays(t *testing.T) {
	p := newTwoTenants(t)
	p.a.edit("m1c29", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	p.moveTo("tenant-b")
	p.at(t, pools.MoveDrained, "")
	p.moveTo("tenant-a")
	fixture.Eventually(t, "over", func() bool { return len(p.Moves()) == 0 })
	if !p.a.node("m1c29").Spec.Unschedulable {
		t.Error("it was uncordoned")
	}
}

// drover lacks a right of deploy/rbac.yaml.
func TestMoveWithoutRights(t *testing.T) {
	for key, want := range map[string]string{
		"GET pods":   "list the pods of the Node: the kubeconfig's user lacks the right, apply deploy/rbac.yaml",
		"POST pods":  "evict pod default/web: the kubeconfig's user lacks the right",
		"GET leases": "read the Lease of the Node's kubelet: the kubeconfig's user lacks the right",
	} {
		t.Run(key, func(t *testing.T) {
			p := newTwoTenants(t)
			p.a.run("m1c29", "web")
			p.a.set(key, fail(403, "Forbidden", "no"))
			p.moveTo("tenant-b")
			fixture.Eventually(t, want, func() bool { m := p.Moves(); return len(m) == 1 && strings.Contains(m[0].Detail, want) })
			if !p.a.node("m1c29").Spec.Unschedulable {
				t.Error("it is not even cordoned")
			}
			logged := func() int { return strings.Count(p.log.String(), "node does not move yet") }
			fixture.Eventually(t, "logged", func() bool { return logged() > 0 }) // a moment after the move says so
			if got := logged(); got != 1 {
				t.Errorf("logged %d times, want once", got)
			}
			if key == "GET leases" {
				fixture.Eventually(t, "drained all the same", func() bool { return slices.Equal(p.a.ended(), []string{"web"}) })
			}
			p.a.set(key, nil)
			p.at(t, pools.MoveDrained, "")
		})
	}
}

// Unknown hardware is declared as a node: the Node of its earlier name is removed.
func TestRenamedMachine(t *testing.T) {
	p := newTwoTenants(t)
	p.farm.renamed = map[string]*resolve.Plan{"node-1": plan(func(p *resolve.Plan) { p.Cluster = "tenant-b" })}
	p.farm.set(plan(func(p *resolve.Plan) { p.Node = "node-1" }))
	p.a.setNode("node-1", "u9", "b1", corev1.ConditionTrue, beat(1))
	p.Refresh()
	fixture.Eventually(t, "sealed", func() bool { return p.a.node("node-1").Annotations["drover/seal"] != "" })
	p.farm.mu.Lock()
	delete(p.farm.plans, "node-1")
	p.farm.mu.Unlock()
	p.Refresh()
	p.at(t, pools.MoveDrained, "")
	if m := p.Moves()[0]; m.Node != "node-1" || m.As != "m1c29" {
		t.Errorf("move %+v", m)
	}
	p.b.setNode("m1c29", "u2", "b2", corev1.ConditionTrue, beat(1))
	p.clock.seconds.Add(11)
	fixture.Eventually(t, "gone", func() bool { return p.a.node("node-1").Name == "" })
}

// The JSON of a move that evicts pods has the step and the detail.
func TestMoveJSON(t *testing.T) {
	text, err := json.Marshal(pools.Move{Node: "n", From: "a", To: "b", As: "n", Step: pools.MoveDrains, Detail: "2 pods left", Since: time.Unix(0, 0).UTC()})
	if want := `{"node":"n","from":"a","to":"b","as":"n","step":"drains","detail":"2 pods left","since":"1970-01-01T00:00:00Z"}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}
