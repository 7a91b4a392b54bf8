package controlplane_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// guarded has a pod with a disruption budget and one without. The control planes have no
// kubelet that would end them, hence the grace period of 0.
const guarded = `
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: db}, spec: {minAvailable: 1, selector: {matchLabels: {app: db}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: db, labels: {app: db}}, spec: {nodeName: NODE, automountServiceAccountToken: false, terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: NODE, automountServiceAccountToken: false, terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}}
`

// testMove gives a node of a to b: it is cordoned and drained, as far as a budget
// lets it, and goes when its machine is Ready in b.
func testMove(t *testing.T, a, b *controlplane.Cluster) {
	const name = "move1"
	var plan atomic.Pointer[resolve.Plan]
	give := func(p *controlplane.Cluster) *resolve.Plan {
		plan.Store(&resolve.Plan{Node: name, Cluster: p.Name})
		return plan.Load()
	}
	settings := func(c *kube.Clusters) {
		c.Machines = planOf(func(node string) *resolve.Plan {
			if node == name {
				return plan.Load()
			}
			return nil
		})
		c.Key, c.MoveInterval, c.DeadAfter = []byte("a key that lasts"), 200*time.Millisecond, 2*time.Second
	}
	c, ready := clustersWith(t, 0, settings, a, b)
	token, _ := join(t, c, give(a), "boot-1")
	kubelet := bootstrap(t, a, name, token)
	register(t, a, kubelet, name)
	renew(t, a, kubelet, name)
	beat(t, a, kubelet, name, "boot-1", "True")
	<-ready
	fixture.Retry(t, "sealed", func() error {
		if field(t, a, name, `{.metadata.annotations.drover/seal}`) == "" {
			return errors.New("no seal yet")
		}
		return nil
	})
	apply(t, a, strings.ReplaceAll(guarded, "NODE", name))
	// The disruption controller has to see the pod before the budget holds it;
	// until then it lets nothing go either.
	if _, err := a.Kubectl(t.Context(), nil, "patch", "pod", "db", "--subresource=status", "--type=merge",
		"-p", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`); err != nil {
		t.Fatal(err)
	}

	// Before its machine is switched off, with the same rights.
	if _, err := c.Drain(t.Context(), name, 10*time.Second, func(string) {}); err == nil || !strings.Contains(err.Error(), "held by a PodDisruptionBudget: default/db") {
		t.Errorf("a drain that takes too long: %v", err)
	}
	if got := field(t, a, name, "{.spec.unschedulable}"); got != "" {
		t.Errorf("after it the Node is cordoned: %q", got)
	}
	apply(t, a, strings.ReplaceAll(guarded, "NODE", name)) // what was evicted

	give(b)
	c.Refresh()
	at := func(step pools.MoveStep, detail string) {
		t.Helper()
		fixture.Retry(t, string(step), func() error {
			m := c.Moves()
			if len(m) != 1 || m[0].Step != step || !strings.Contains(m[0].Detail, detail) {
				return fmt.Errorf("moves %+v", m)
			}
			return nil
		})
	}
	at(pools.MoveDrains, "1 pod left; held by a PodDisruptionBudget: default/db")
	if got := field(t, a, name, "{.spec.unschedulable}"); got != "true" {
		t.Errorf("unschedulable is %q", got)
	}
	left, err := a.Kubectl(t.Context(), nil, "get", "pods", "-o", "name")
	if err != nil || left != "pod/db\n" {
		t.Errorf("pods left: %q, %v", left, err)
	}

	// drover restarts, and the budget allows the eviction.
	c.Close()
	c, ready = clustersWith(t, 0, settings, a, b)
	c.Refresh()
	at(pools.MoveDrains, "default/db")
	if _, err := a.Kubectl(t.Context(), nil, "delete", "pdb", "db"); err != nil {
		t.Fatal(err)
	}
	at(pools.MoveDrained, "waits for its machine to be booted")

	// As long as its kubelet lives the Node stays.
	renew(t, a, kubelet, name)
	if got := field(t, a, name, "{.metadata.name}"); got != name {
		t.Errorf("the Node is %q", got)
	}
	start := time.Now()
	token, _ = join(t, c, plan.Load(), "boot-2")
	kubelet = bootstrap(t, b, name, token)
	register(t, b, kubelet, name)
	beat(t, b, kubelet, name, "boot-2", "True")
	<-ready
	fixture.Retry(t, "gone from its first cluster", func() error {
		out, err := a.Kubectl(t.Context(), nil, "get", "node", name)
		if err == nil || !strings.Contains(err.Error(), "NotFound") {
			return fmt.Errorf("%q, %w", out, err)
		}
		return nil
	})
	t.Logf("gone %v after it asked to join the other", time.Since(start).Round(time.Millisecond))
	if got := field(t, b, name, "{.spec.unschedulable}"); got != "" {
		t.Errorf("in its new cluster it is cordoned: %q", got)
	}
}
