package kube_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// progress has what a drain says.
type progress struct {
	mu   sync.Mutex
	last string
}

func (p *progress) set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = text
}

func (p *progress) has(text string) func() bool {
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.Contains(p.last, text)
	}
}

// reconciled makes a Clusters count its reconciliations of the first tenant.
type reconciled struct {
	mu sync.Mutex
	n  int
}

func (r *reconciled) option(c *kube.Clusters, _ []pools.Cluster) {
	c.OnReconcile = func(cluster string, _ int, _ error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if cluster == "tenant-a" {
			r.n++
		}
	}
}

func (r *reconciled) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// again waits until all Nodes were reconciled once more.
func (r *reconciled) again(t *testing.T, c *kube.Clusters) {
	t.Helper()
	before := r.count()
	c.Refresh()
	fixture.Eventually(t, "another reconciliation", func() bool { return r.count() > before })
}

// A Node is drained before its machine is switched off. It stays cordoned when the machine
// was switched, and is uncordoned when it was not.
func TestDrain(t *testing.T) {
	for _, switched := range []bool{true, false} {
		count := &reconciled{}
		p := newTwoTenants(t, count.option)
		p.a.run("m1c29", "web")
		p.a.run("m1c29", "db")
		p.a.run("m1c29", "log-agent", daemon)
		p.a.hold("db", true)
		said := &progress{}
		type result struct {
			done func(bool)
			err  error
		}
		results := make(chan result, 1)
		go func() {
			done, err := p.Drain(t.Context(), "m1c29", time.Hour, said.set)
			results <- result{done, err}
		}()
		fixture.Eventually(t, "what is left", said.has("1 pod left; held by a PodDisruptionBudget: default/db"))
		if _, err := p.Drain(t.Context(), "m1c29", time.Hour, said.set); err == nil || !strings.Contains(err.Error(), "it is being drained already") {
			t.Errorf("a second drain: %v", err)
		}
		count.again(t, p.Clusters)
		if !p.a.node("m1c29").Spec.Unschedulable {
			t.Error("it is uncordoned while it is drained")
		}
		p.a.hold("db", false)
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		r.done(switched)
		count.again(t, p.Clusters)
		if n := p.a.node("m1c29"); n.Spec.Unschedulable != switched || n.Annotations["drover/moving"] != "" {
			t.Errorf("switched %v: cordoned %v, annotations %v", switched, n.Spec.Unschedulable, n.Annotations)
		}
	}
}

// A pod that a budget holds for longer than the limit keeps the machine on, and the Node is
// as it was.
func TestDrainTakesTooLong(t *testing.T) {
	for _, cordoned := range []bool{true, false} {
		p := newTwoTenants(t)
		p.a.edit("m1c29", func(n *corev1.Node) { n.Spec.Unschedulable = cordoned })
		p.a.run("m1c29", "db")
		p.a.hold("db", true)
		_, err := p.Drain(t.Context(), "m1c29", 300*time.Millisecond, func(string) {})
		if err == nil || !strings.Contains(err.Error(), "it is not drained after 300ms: 1 pod left; held by a PodDisruptionBudget: default/db") {
			t.Errorf("got %v", err)
		}
		if n := p.a.node("m1c29"); n.Spec.Unschedulable != cordoned || n.Annotations["drover/moving"] != "" {
			t.Errorf("cordoned %v, want %v; annotations %v", n.Spec.Unschedulable, cordoned, n.Annotations)
		}
	}
}

// A server that ended in the middle of a drain uncordons the Node when it is back.
func TestDrainAndRestart(t *testing.T) {
	p := newTwoTenants(t)
	p.a.run("m1c29", "web")
	if _, err := p.Drain(t.Context(), "m1c29", time.Hour, func(string) {}); err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Clusters = p.server()
	p.Refresh()
	fixture.Eventually(t, "uncordoned", func() bool { return !p.a.node("m1c29").Spec.Unschedulable })
}

// What cannot be drained, and what need not be.
func TestDrainOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*twoTenants)
		want string // in the error; empty: the machine can be switched
	}{
		"no Node": {func(p *twoTenants) { p.farm.set(plan(func(p *resolve.Plan) { p.Node = "other" })) }, ""},
		"a silent kubelet": {func(p *twoTenants) {
			p.a.edit("m1c29", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		}, ""},
		"no cluster":      {func(p *twoTenants) { p.farm.set(plan(func(p *resolve.Plan) { p.Cluster = "" })) }, ""},
		"unknown cluster": {func(p *twoTenants) { p.farm.set(plan(func(p *resolve.Plan) { p.Cluster = "c" })) }, `no cluster "c" in the config`},
		"no seal":         {func(p *twoTenants) { p.a.edit("m1c29", func(n *corev1.Node) { n.Annotations = nil }) }, "drover cannot prove that it made the Node (kubectl drain m1c29"},
		"no right":        {func(p *twoTenants) { p.a.set("GET pods", fail(403, "Forbidden", "pods is forbidden")) }, "lacks the right"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTwoTenants(t)
			p.a.run("m1c29", "web")
			tt.edit(p)
			node := "m1c29"
			if name == "no Node" {
				node = "other"
			}
			done, err := p.Drain(context.WithoutCancel(t.Context()), node, time.Hour, func(string) {})
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				done(true)
			} else if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if n := p.a.node("m1c29"); n.Spec.Unschedulable || len(p.a.ended()) > 0 {
				t.Errorf("cordoned %v, evicted %q", n.Spec.Unschedulable, p.a.ended())
			}
		})
	}
}
