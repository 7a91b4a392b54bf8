package controlplane_test

import (
	"fmt"
	"slices"
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

// testReconcile edits the tags of a node that runs. A kubelet has registered it with
// labels and a taint of the config; a person and Kubernetes have put on others.
func testReconcile(t *testing.T, p *controlplane.Cluster) {
	const name = "t1"
	var plan atomic.Pointer[resolve.Plan]
	edit := func(labels map[string]string, taints ...pools.Taint) *resolve.Plan {
		p := &resolve.Plan{Node: name, Cluster: p.Name, Settings: resolve.Settings{Labels: labels, Taints: taints}}
		plan.Store(p)
		return p
	}
	foo := pools.Taint{Key: "foo", Value: "bar", Effect: "NoSchedule"}
	first := edit(map[string]string{"pool": "web", "node-role.kubernetes.io/web": ""}, foo)

	c, ready := clustersWith(t, 0, func(c *kube.Clusters) {
		c.Machines = planOf(func(node string) *resolve.Plan {
			if node == name {
				return plan.Load()
			}
			return nil
		})
	}, p)
	token, _ := join(t, c, first, "boot-1")
	kubelet := bootstrap(t, p, name, token)
	register(t, p, kubelet, name)
	beat(t, p, kubelet, name, "boot-1", "True")
	<-ready
	for _, args := range [][]string{{"label", "node", name, "person=me"}, {"taint", "node", name, "quarantine=yes:NoExecute"}, {"cordon", name}} {
		if _, err := p.Kubectl(t.Context(), nil, args...); err != nil {
			t.Fatal(err)
		}
	}
	const others = "node.kubernetes.io/unschedulable=:NoSchedule quarantine=yes:NoExecute"
	steps := []struct {
		name       string
		labels     map[string]string
		taints     []pools.Taint
		pool, role string // "-" is none
		taint      string
	}{
		{"the same", first.Labels, first.Taints, "web", "", "foo=bar:NoSchedule"},
		{"changed", map[string]string{"pool": "db"}, []pools.Taint{{Key: "foo", Value: "baz", Effect: "NoSchedule"}}, "db", "-", "foo=baz:NoSchedule"},
		{"another taint", map[string]string{"pool": "db"}, []pools.Taint{{Key: "gpu", Effect: "NoExecute"}}, "db", "-", "gpu=:NoExecute"},
		{"all removed", nil, nil, "-", "-", ""},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			edit(step.labels, step.taints...)
			start := time.Now()
			c.Refresh()
			fixture.Retry(t, "labels and taints as the config says", func() error {
				labels := nodeLabels(t, p, name)
				of := func(key string) string {
					if v, ok := labels[key]; ok {
						return v
					}
					return "-"
				}
				if of("pool") != step.pool || of("node-role.kubernetes.io/web") != step.role || of("person") != "me" {
					return fmt.Errorf("labels %v", labels)
				}
				taints := field(t, p, name, "{range .spec.taints[*]}{.key}={.value}:{.effect} {end}")
				got, want := strings.Fields(taints), strings.Fields(others+" "+step.taint)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					return fmt.Errorf("taints %q, want %q", got, want)
				}
				return nil
			})
			t.Logf("seen %v after the edit", time.Since(start).Round(time.Millisecond))
		})
	}
}
