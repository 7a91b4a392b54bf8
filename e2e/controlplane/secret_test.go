package controlplane_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// rights are drover's rights in the admin cluster, as in docs/clusters.md: one Secret.
const secretRights = `
apiVersion: v1
kind: Namespace
metadata: {name: tenants}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: drover, namespace: tenants}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: drover-tenants, namespace: tenants}
rules:
  - {apiGroups: [""], resources: [secrets], resourceNames: [%s-kubeconfig], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: drover-tenants, namespace: tenants}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: drover-tenants}
subjects: [{kind: ServiceAccount, name: drover, namespace: tenants}]
`

// apply applies a manifest as the administrator.
func apply(t *testing.T, p *controlplane.Cluster, manifest string) {
	t.Helper()
	if _, err := p.Kubectl(t.Context(), strings.NewReader(manifest), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// account makes a kubeconfig for a ServiceAccount, and returns the name of the
// Secret that its token is bound to: with that it ends.
func account(t *testing.T, p *controlplane.Cluster, namespace, bound string) (kubeconfig string) {
	t.Helper()
	args := []string{"create", "token", "drover", "-n", namespace, "--duration=1h"}
	if bound != "" {
		apply(t, p, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}}", bound, namespace))
		args = append(args, "--bound-object-kind=Secret", "--bound-object-name="+bound)
	}
	token, err := p.Kubectl(t.Context(), nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/kubeconfig"
	if err := p.WriteKubeconfig(path, strings.TrimSpace(token)); err != nil {
		t.Fatal(err)
	}
	return path
}

// testSecret keeps the kubeconfig of b in a Secret of a, as Cluster API does:
// nodes join b, its credentials are rotated during a join, and in the end the Secret is
// deleted.
func testSecret(t *testing.T, a, b *controlplane.Cluster) {
	name := b.Name + "-kubeconfig"
	apply(t, a, fmt.Sprintf(secretRights, b.Name))
	keep := func(kubeconfig string) {
		t.Helper()
		text, err := os.ReadFile(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]string{"name": name, "namespace": "tenants"},
			"data":     map[string]string{"value": base64.StdEncoding.EncodeToString(text)}})
		if err != nil {
			t.Fatal(err)
		}
		apply(t, a, string(secret))
	}
	keep(account(t, b, "kube-system", "first"))

	ready := make(chan string, 10)
	c := &kube.Clusters{
		Admin: account(t, a, "tenants", ""), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		OnReady: func(p *resolve.Plan, _ time.Time) { ready <- p.Node }, StartLoops: true,
	}
	c.Set([]pools.Cluster{{Name: b.Name, SecretRef: pools.SecretRef{Namespace: "tenants", Name: name}}})
	t.Cleanup(c.Close)
	plan := &resolve.Plan{Node: "s1", Cluster: b.Name}
	token, _ := join(t, c, plan, "boot-1")
	kubelet := bootstrap(t, b, plan.Node, token)
	register(t, b, kubelet, plan.Node)

	// The node is on its way to Ready. drover's first credentials end.
	start := time.Now()
	keep(account(t, b, "kube-system", "second"))
	if _, err := b.Kubectl(t.Context(), nil, "delete", "secret", "first", "-n", "kube-system"); err != nil {
		t.Fatal(err)
	}
	fixture.Retry(t, "the new credentials in force", func() error {
		_, err := c.Join(t.Context(), &resolve.Plan{Node: "s2", Cluster: b.Name}, netip.MustParseAddr("10.28.36.174"), "boot-1")
		return err
	})
	t.Logf("new credentials in force %v after the edit", time.Since(start).Round(time.Millisecond))
	beat(t, b, kubelet, plan.Node, "boot-1", "True")
	select {
	case got := <-ready:
		if got != plan.Node {
			t.Errorf("%q is Ready, want %q", got, plan.Node)
		}
	case <-time.After(2 * time.Minute):
		t.Error("a join that was under way when the credentials changed did not come to its end")
	}

	if _, err := a.Kubectl(t.Context(), nil, "delete", "secret", name, "-n", "tenants"); err != nil {
		t.Fatal(err)
	}
	fixture.Retry(t, "the deletion is noticed", func() error {
		_, err := c.Join(t.Context(), plan, netip.MustParseAddr("10.28.36.173"), "boot-1")
		if err == nil || !strings.Contains(err.Error(), "there is no Secret tenants/"+name+" of the admin cluster") {
			return fmt.Errorf("join: %w", err)
		}
		return nil
	})
}
