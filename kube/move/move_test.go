package move_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/e2e/apitest"
	"drover/e2e/fixture"
	"drover/kube/cluster"
	"drover/kube/move"
	"drover/kube/node"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	m1     = "/api/v1/nodes/m1"
	lease  = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/m1"
	podsOf = "/api/v1/namespaces/default/pods/"
)

type object = apitest.Object

var key = []byte("the key of this drover")

// tenant is a cluster with a Node that drover made, and its mover.
type tenant struct {
	*apitest.Server
	*move.Mover
	seconds atomic.Int64
	log     *fixture.Log

	mu sync.Mutex
	to *resolve.Plan // where m1 belongs; nil: it stays
}

func newTenant(t *testing.T) *tenant {
	t.Helper()
	c := &tenant{Server: apitest.New(t, map[string]string{"pods": "Pod"}), log: new(fixture.Log)}
	now := func() time.Time { return time.Unix(1_700_000_000+c.seconds.Load(), 0) }
	log := slog.New(slog.NewTextHandler(c.log, nil))
	tenant := cluster.New(pools.Cluster{Name: "tenant-a"}, c.Kubeconfig(), now)
	c.Mover = &move.Mover{
		Cluster: tenant, Key: key, Leases: node.NewLeases(tenant, key, now, 10*time.Second, log), Interval: 2 * time.Millisecond, Log: log, Now: now,
		Target: func(name string) *resolve.Plan {
			c.mu.Lock()
			defer c.mu.Unlock()
			if name != "m1" {
				return nil
			}
			return c.to
		},
		Lookup: func(string) (*cluster.Cluster, error) { return nil, errors.New("no other cluster") },
	}
	c.Put(m1, object{
		"apiVersion": "v1", "kind": "Node", "spec": object{},
		"metadata": object{"uid": "u1", "labels": object{node.Managed: "true"}, "annotations": object{"drover/labels": "", "drover/taints": "", "drover/seal": node.Seal(key, "u1", "", "")}},
		"status":   object{"conditions": []any{object{"type": "Ready", "status": "True"}}, "nodeInfo": object{"bootID": "b1"}},
	})
	c.Put(lease, object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"})
	return c
}

// moveTo gives the machine to another cluster.
func (c *tenant) moveTo(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = &resolve.Plan{Node: "m1", Cluster: cluster}
}

// run binds a pod to m1.
func (c *tenant) run(name string, edit ...func(pod object)) {
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"namespace": "default", "name": name}, "spec": object{"nodeName": "m1"}, "status": object{"phase": "Running"}}
	for _, e := range edit {
		e(pod)
	}
	c.Put(podsOf+name, pod)
}

// pods returns which of the named pods are left.
func (c *tenant) pods(names ...string) (left string) {
	for _, name := range names {
		if c.Get(podsOf+name) != nil {
			left += " " + name
		}
	}
	return strings.TrimSpace(left)
}

// hold has a budget hold the pod db until release is called.
func (c *tenant) hold() (release func()) {
	var released atomic.Bool
	c.Before(func(method, path string) *apitest.Problem {
		if method == "POST" && path == podsOf+"db/eviction" && !released.Load() {
			return &apitest.Problem{Code: 429, Reason: "TooManyRequests", Message: "it would violate the pod's disruption budget"}
		}
		return nil
	})
	return func() { released.Store(true) }
}

// state returns whether m1 is cordoned, and by drover.
func (c *tenant) state() string {
	n := c.Get(m1)
	if n == nil {
		return "gone"
	}
	text := "open"
	if n["spec"].(object)["unschedulable"] == true {
		text = "cordoned"
	}
	if apitest.Text(n, "metadata", "annotations", "drover/moving") != "" {
		text += " by drover"
	}
	return text
}

func quiet(string) {}

// start lets a Check run until the test ends.
func (c *tenant) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	n := &corev1.Node{}
	n.Name = "m1"
	c.Check(n, func(f func(context.Context)) bool {
		running.Go(func() { f(ctx) })
		return true
	})
}

// at waits until the move of m1 is at a step.
func (c *tenant) at(t *testing.T, step pools.MoveStep, detail string) {
	t.Helper()
	fixture.Eventually(t, fmt.Sprint(step, " ", detail), func() bool {
		m := c.Moves()
		return len(m) == 1 && m[0].Step == step && strings.Contains(m[0].Detail, detail)
	})
}

// again waits until the mover has read the Node and its Lease twice more.
func (c *tenant) again(t *testing.T) {
	t.Helper()
	before := len(c.Requests("GET " + lease))
	fixture.Eventually(t, "two more checks", func() bool { return len(c.Requests("GET "+lease)) >= before+3 })
}

// TestEvicted: pods that their controllers would replace, or that end with their Node, stay.
func TestEvicted(t *testing.T) {
	owned := func(kind string) func(object) {
		return func(p object) {
			p["metadata"].(object)["ownerReferences"] = []any{object{"kind": kind, "name": "x", "uid": "x", "apiVersion": "apps/v1", "controller": true}}
		}
	}
	phase := func(phase string) func(object) { return func(p object) { p["status"] = object{"phase": phase} } }
	for _, switched := range []bool{true, false} {
		c := newTenant(t)
		c.run("web", owned("ReplicaSet"))
		c.run("bare")
		c.run("agent", owned("DaemonSet"))
		c.run("static", func(p object) { p["metadata"].(object)["annotations"] = object{"kubernetes.io/config.mirror": "x"} })
		c.run("done", phase("Succeeded"))
		c.run("failed", phase("Failed"))
		c.run("elsewhere", func(p object) { p["spec"] = object{"nodeName": "m2"} })
		done, err := c.Drain(t.Context(), "m1", time.Hour, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.pods("web", "bare", "agent", "static", "done", "failed", "elsewhere"); got != "agent static done failed elsewhere" || c.state() != "cordoned by drover" {
			t.Errorf("left are %s; the Node is %s", got, c.state())
		}
		done(switched)
		if want := map[bool]string{true: "cordoned", false: "open"}[switched]; c.state() != want {
			t.Errorf("switched %t: the Node is %s, want %s", switched, c.state(), want)
		}
	}
}

// TestReplacedPod: a pod that has taken the name of another is not evicted in its place.
func TestReplacedPod(t *testing.T) {
	c := newTenant(t)
	c.run("web-0")
	c.Before(func(method, path string) *apitest.Problem {
		if method == "POST" && strings.HasSuffix(path, "/eviction") {
			c.Drop(podsOf + "web-0")
			c.run("web-0", func(p object) { p["spec"] = object{"nodeName": "m2"} })
		}
		return nil
	})
	if _, err := c.Drain(t.Context(), "m1", time.Hour, quiet); err != nil || c.pods("web-0") == "" {
		t.Errorf("got error %v; left are %q", err, c.pods("web-0"))
	}
}

// TestHeld: a budget holds a pod for as long as it takes, and at the limit the Node is as it was.
func TestHeld(t *testing.T) {
	for _, before := range []string{"open", "cordoned"} {
		c := newTenant(t)
		c.Edit(m1, func(n object) { n["spec"] = object{"unschedulable": before == "cordoned"} })
		c.run("db")
		c.run("web")
		release := c.hold()
		_, err := c.Drain(t.Context(), "m1", 200*time.Millisecond, quiet)
		if want := "it is not drained after 200ms: 1 pod left; held by a PodDisruptionBudget: default/db"; err == nil || err.Error() != want || c.state() != before {
			t.Errorf("got error %v, want %s; the Node is %s, was %s", err, want, c.state(), before)
		}
		release()
		done, err := c.Drain(t.Context(), "m1", time.Hour, quiet)
		if err != nil {
			t.Fatal(err)
		}
		done(false)
		if c.pods("db") != "" || c.state() != before {
			t.Errorf("left are %q, the Node is %s, was %s", c.pods("db"), c.state(), before)
		}
	}
}

// TestLeftAlone: Nodes that drover did not make, or cannot reach, are not touched.
func TestLeftAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(n object)
		want string // in the error; empty: no drain is needed
	}{
		"no mark": {func(n object) { n["metadata"].(object)["labels"] = nil }, "drover cannot prove that it made the Node"},
		"no seal": {func(n object) { n["metadata"].(object)["annotations"] = nil }, "drover cannot prove that it made the Node"},
		"seal of another": {func(n object) {
			n["metadata"].(object)["annotations"].(object)["drover/seal"] = node.Seal([]byte("x"), "u1", "", "")
		}, "drover cannot prove that it made the Node"},
		"seal of before": {func(n object) { n["metadata"].(object)["uid"] = "u2" }, "drover cannot prove that it made the Node"},
		"kubelet silent": {func(n object) {
			n["status"] = object{"conditions": []any{object{"type": "Ready", "status": "Unknown"}}}
		}, ""},
		"other conditions": {func(n object) {
			n["status"] = object{"conditions": []any{object{"type": "Disk", "status": "Unknown"}, object{"type": "Ready", "status": "Unknown"}}}
		}, ""},
	} {
		c := newTenant(t)
		c.run("web")
		c.Edit(m1, tt.edit)
		done, err := c.Drain(t.Context(), "m1", time.Hour, quiet)
		if tt.want == "" && err == nil {
			done(true)
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tt.want)
		}
		if len(c.Requests("POST")) > 0 || len(c.Requests("PATCH")) > 0 {
			t.Errorf("%s: %q", name, append(c.Requests("POST"), c.Requests("PATCH")...))
		}
	}
	c := newTenant(t)
	if done, err := c.Drain(t.Context(), "none", time.Hour, quiet); err != nil {
		t.Errorf("no Node: %v", err)
	} else {
		done(true)
	}
}

// TestConflict: what others write at the same time stays, and the Node is cordoned all the same.
func TestConflict(t *testing.T) {
	c := newTenant(t)
	other := sync.OnceFunc(func() { c.Edit(m1, func(n object) { n["metadata"].(object)["labels"].(object)["person"] = "me" }) })
	c.Before(func(method, _ string) *apitest.Problem {
		if method == "PATCH" {
			other()
		}
		return nil
	})
	done, err := c.Drain(t.Context(), "m1", time.Hour, quiet)
	if err != nil || c.state() != "cordoned by drover" || apitest.Text(c.Get(m1), "metadata", "labels", "person") != "me" {
		t.Fatalf("got error %v, the Node is %s: %v", err, c.state(), c.Get(m1)["metadata"])
	}
	if _, err := c.Drain(t.Context(), "m1", time.Hour, quiet); err == nil || !strings.Contains(err.Error(), "it is being drained already") {
		t.Errorf("a second drain: %v", err)
	}
	done(false)
	if c.state() != "open" {
		t.Errorf("the Node is %s", c.state())
	}
}

// TestMove: the Node is deleted once its machine is off for certain, and not before.
func TestMove(t *testing.T) {
	c := newTenant(t)
	c.run("db")
	release := c.hold()
	c.moveTo("tenant-b")
	c.start(t)
	c.at(t, pools.MoveDrains, "1 pod left; held by a PodDisruptionBudget: default/db")
	for range 3 { // its kubelet renews its Lease
		c.seconds.Add(119)
		c.Edit(lease, func(object) {})
		c.again(t)
	}
	c.seconds.Add(119)
	c.again(t)
	if c.state() != "cordoned by drover" {
		t.Fatalf("the Node is %s while its kubelet may live", c.state())
	}
	c.seconds.Add(2)
	fixture.Eventually(t, "the Node to be gone", func() bool { return c.state() == "gone" && len(c.Moves()) == 0 })
	release()
}

// TestMoveOfAnother: a Node that another client makes while drover deletes the old one stays.
func TestMoveOfAnother(t *testing.T) {
	c := newTenant(t)
	c.moveTo("")
	var deletes atomic.Int64
	c.Before(func(method, path string) *apitest.Problem {
		if method == "DELETE" && path == m1 && deletes.Add(1) == 1 {
			c.Drop(m1)
			c.Put(m1, object{"apiVersion": "v1", "kind": "Node", "metadata": object{"uid": "u2"}, "spec": object{}})
		}
		return nil
	})
	c.start(t)
	c.at(t, pools.MoveDrained, "")
	c.seconds.Add(3600)
	c.Edit(lease, func(object) {})
	fixture.Eventually(t, "the first try", func() bool { c.seconds.Add(3600); return deletes.Load() > 0 })
	c.at(t, pools.MoveStays, "drain and delete it by hand")
	if c.state() != "open" || deletes.Load() != 1 {
		t.Errorf("the Node of another is %s, after %d deletions", c.state(), deletes.Load())
	}
}

// TestMovedBack: a Node that drover has cordoned is uncordoned, also after a restart; one that a
// person has cordoned stays so.
func TestMovedBack(t *testing.T) {
	for _, before := range []string{"open", "cordoned"} {
		c := newTenant(t)
		c.Edit(m1, func(n object) { n["spec"] = object{"unschedulable": before == "cordoned"} })
		c.moveTo("tenant-b")
		c.start(t)
		c.at(t, pools.MoveDrained, "")
		c.mu.Lock()
		c.to = nil
		c.mu.Unlock()
		c.start(t) // triggers a check
		fixture.Eventually(t, "the end of the move", func() bool { return len(c.Moves()) == 0 })
		if c.state() != before {
			t.Errorf("the Node is %s, was %s", c.state(), before)
		}
	}
}

// TestNotSpawned: a server that ends keeps no move.
func TestNotSpawned(t *testing.T) {
	c := newTenant(t)
	c.moveTo("tenant-b")
	n := &corev1.Node{}
	n.Name = "m1"
	for range 2 {
		called := false
		c.Check(n, func(func(context.Context)) bool { called = true; return false })
		if !called {
			t.Error("the move is noted, and nothing runs it")
		}
	}
	if len(c.Requests("")) > 0 {
		t.Errorf("requests %q", c.Requests(""))
	}
}
