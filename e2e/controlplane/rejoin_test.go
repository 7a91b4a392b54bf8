package controlplane_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/internal/wait"
	"drover/kube"
	"drover/kube/cluster"
	"drover/pools"
	"drover/pools/resolve"
)

// renew renews the Lease of a Node, as its kubelet does.
func renew(t *testing.T, p *controlplane.Cluster, kubeconfig, name string) {
	t.Helper()
	lease := fmt.Sprintf(`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": %q, "namespace": "kube-node-lease"},
		"spec": {"holderIdentity": %q, "leaseDurationSeconds": 40, "renewTime": %q}}`, name, name, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	if _, err := p.KubectlAs(t.Context(), kubeconfig, strings.NewReader(lease), "apply", "--validate=false", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// field returns a field of a Node.
func field(t *testing.T, p *controlplane.Cluster, name, path string) string {
	t.Helper()
	out, err := p.Kubectl(t.Context(), nil, "get", "node", name, "-o", "jsonpath="+path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rejoin asks for a node's join as its agent does, again at the time that each error
// names, and returns its token.
func rejoin(t *testing.T, c *kube.Clusters, p *resolve.Plan, bootID string) (token string) {
	t.Helper()
	for {
		got, err := c.Join(t.Context(), p, netip.MustParseAddr("10.28.36.173"), bootID)
		busy, ok := errors.AsType[*cluster.Error](err)
		switch {
		case err == nil:
			return tokenIn(got.Kubeadm)
		case !ok || busy.RetryAfter() > time.Minute:
			t.Fatal(err)
		}
		if wait.Sleep(t.Context(), busy.RetryAfter()) != nil {
			t.Fatal(err)
		}
	}
}

// testRejoin follows a machine through a boot that is forged while it runs, and
// one of its own right after it was switched off.
func testRejoin(t *testing.T, p *controlplane.Cluster) {
	c, ready := clusters(t, 0, p)
	plan := &resolve.Plan{Node: "r1", Cluster: p.Name, Settings: resolve.Settings{
		Labels: map[string]string{"pool": "web"}, Taints: []pools.Taint{{Key: "foo", Value: "bar", Effect: "NoSchedule"}},
	}}
	token, _ := join(t, c, plan, "boot-1")
	kubelet := bootstrap(t, p, plan.Node, token)
	register(t, p, kubelet, plan.Node)
	renew(t, p, kubelet, plan.Node)
	beat(t, p, kubelet, plan.Node, "boot-1", "True")
	<-ready
	fixture.Retry(t, "the cluster takes its own taint off", func() error {
		if spec := field(t, p, plan.Node, "{.spec}"); strings.Contains(spec, "node.kubernetes.io/") {
			return errors.New(spec)
		}
		return nil
	})
	was := field(t, p, plan.Node, "{.metadata.uid} {.metadata.labels} {.metadata.annotations} {.spec}")

	// Somebody sends DISCOVERs in its name, takes its address and goes through
	// the whole boot. It even knows the boot ID: each pod of the machine does.
	hasty, _ := clustersWith(t, 0, func(c *kube.Clusters) { c.DeadAfter = 3 * time.Second }, p)
	for _, bootID := range []string{"boot-2", "boot-1", ""} {
		hasty.Expect(plan)
		time.Sleep(time.Second)
		renew(t, p, kubelet, plan.Node)
		_, err := hasty.Join(t.Context(), plan, netip.MustParseAddr("10.28.36.173"), bootID)
		if err == nil || !strings.Contains(err.Error(), "a machine that calls itself r1 still runs there: its kubelet renewed its Lease within the last ") {
			t.Errorf("boot %q, forged: %v, want that the machine still runs", bootID, err)
		}
	}
	if is := field(t, p, plan.Node, "{.metadata.uid} {.metadata.labels} {.metadata.annotations} {.spec}"); is != was {
		t.Errorf("after the forged boots the Node is\n%s, it was\n%s", is, was)
	}
	if tokens := droverTokens(t, p); tokens != "" {
		t.Errorf("tokens were minted for a forged boot: %s", tokens)
	}

	// It is switched off and on. Its Node is Ready to the cluster, which kubeadm
	// would not have; the tag has changed meanwhile.
	again := *plan
	again.Labels = map[string]string{"pool": "db"}
	c.Expect(&again)
	start := time.Now()
	token = rejoin(t, c, &again, "boot-2")
	took := time.Since(start)
	if took < 35*time.Second {
		t.Errorf("the join took %v, less than the 40 s of its kubelet's Lease", took)
	}
	if out, err := p.Kubectl(t.Context(), nil, "get", "node", plan.Node); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("the Node of the boot before: %q, %v, want it gone", out, err)
	}
	kubelet = bootstrap(t, p, plan.Node, token)
	register(t, p, kubelet, plan.Node)
	beat(t, p, kubelet, plan.Node, "boot-2", "True")
	<-ready
	if uid := field(t, p, plan.Node, "{.metadata.uid}"); strings.HasPrefix(was, uid) {
		t.Error("the Node of the second boot is that of the first")
	}
	fixture.Retry(t, "fresh labels", func() error {
		if labels := nodeLabels(t, p, plan.Node); labels["pool"] != "db" {
			return fmt.Errorf("labels %v", labels)
		}
		return nil
	})
	t.Logf("a machine that was switched off and on got its token after %v", took)
}

// A Node that drover did not make stays, and no machine takes its name.
func testForeignNode(t *testing.T, p *controlplane.Cluster) {
	c, _ := clustersWith(t, 0, func(c *kube.Clusters) { c.DeadAfter = time.Second }, p)
	if _, err := p.Kubectl(t.Context(), strings.NewReader(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand"}}`), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	uid := field(t, p, "by-hand", "{.metadata.uid}")
	plan := &resolve.Plan{Node: "by-hand", Cluster: p.Name}
	c.Expect(plan)
	_, err := c.Join(t.Context(), plan, netip.MustParseAddr("10.28.36.173"), "boot-2")
	if err == nil || !strings.Contains(err.Error(), "drover did not make the Node by-hand") {
		t.Errorf("a machine asked to join under its name: %v, want that drover did not make it", err)
	}
	if got := field(t, p, "by-hand", "{.metadata.uid}"); got != uid {
		t.Error("it was deleted")
	}
}
