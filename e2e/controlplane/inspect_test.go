package controlplane_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/inspect"
	"drover/pools"
)

// findings returns the findings of a cluster as text, and their number.
func findings(t *testing.T, p *controlplane.Cluster, kubeconfig string) (wrong []inspect.Finding, n int) {
	t.Helper()
	c := &kube.Clusters{}
	c.Set([]pools.Cluster{{Name: p.Name, Kubeconfig: kubeconfig}})
	defer c.Close()
	all, err := c.Inspect(t.Context(), p.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		t.Log(f)
	}
	return slices.DeleteFunc(slices.Clone(all), func(f inspect.Finding) bool { return f.OK }), len(all)
}

// testInspect inspects a correct cluster, then one with every fault, and at last one
// whose rights are restored.
func testInspect(t *testing.T, p *controlplane.Cluster) {
	const foreign = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain"}}`
	if _, err := p.Kubectl(t.Context(), strings.NewReader(foreign), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	want := func(t *testing.T, wrong []inspect.Finding, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !slices.ContainsFunc(wrong, func(f inspect.Finding) bool { return strings.Contains(f.What+": "+f.Detail, line) }) {
				t.Errorf("nothing says %q", line)
			}
		}
		if len(wrong) != len(lines) {
			t.Errorf("%d things are wrong, want %d", len(wrong), len(lines))
		}
	}
	t.Run("as it is", func(t *testing.T) {
		t.Run("well", func(t *testing.T) {
			t.Parallel()
			if wrong, n := findings(t, p, p.Client); len(wrong) > 0 || n < 14 {
				t.Errorf("%d things looked at; wrong: %v", n, wrong)
			}
		})
		t.Run("as drover cluster prepare writes it", func(t *testing.T) {
			t.Parallel()
			kubeconfig, end, err := inspect.Credentials(t.Context(), p.Admin, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(end); left < 30*time.Minute || left > 2*time.Hour {
				t.Errorf("its token lasts for %s", left)
			}
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
				t.Fatal(err)
			}
			if wrong, _ := findings(t, p, file); len(wrong) > 0 {
				t.Errorf("wrong: %v", wrong)
			}
		})
		t.Run("an administrator's credentials", func(t *testing.T) {
			t.Parallel()
			wrong, _ := findings(t, p, p.Admin)
			want(t, wrong, "no more rights: drover may, and should not: get secrets in kube-system", "policy of join tokens: drover could make any Secret", "policy of Nodes: drover could change and delete any Node")
		})
		t.Run("black hole", func(t *testing.T) {
			t.Parallel()
			h := newHole(t, p.Endpoint())
			h.turn(true)
			wrong, _ := findings(t, p, h.through(t, p))
			want(t, wrong, "API server: ask for its version: the API server does not answer in time")
		})
	})
	if tokens := droverTokens(t, p); strings.Contains(tokens, base64.StdEncoding.EncodeToString([]byte("drover: node none (drover cluster check)"))) {
		t.Errorf("tokens left: %s", tokens)
	}
	t.Run("all wrong", func(t *testing.T) {
		for _, args := range []string{
			"delete validatingadmissionpolicybinding drover-only-join-tokens",
			"delete clusterrolebinding drover-nodes drover-approver drover-node-renewal",
			"delete rolebinding drover-used-tokens -n drover-used-tokens", // as in a cluster that an earlier drover prepared
			"delete validatingadmissionpolicybinding drover-only-its-requests",
			"create clusterrolebinding too-much --group=system:bootstrappers --clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient",
			`patch role drover-join -n kube-system --type=json -p [{"op":"replace","path":"/rules/0/resourceNames","value":["kubelet-config"]}]`,
		} {
			if _, err := p.Kubectl(t.Context(), nil, strings.Fields(args)...); err != nil {
				t.Fatal(err)
			}
		}
		patch := `{"data":{"kubelet":"cgroupDriver: systemd\nauthentication: {x509: {clientCAFile: /tmp/ca.crt}}\n"}}`
		if _, err := p.Kubectl(t.Context(), nil, "patch", "configmap", "kubelet-config", "-n", "kube-system", "-p", patch); err != nil {
			t.Fatal(err)
		}
		fixture.Retry(t, "the policy is gone", func() error {
			_, err := p.KubectlAs(t.Context(), p.Client, nil, "create", "secret", "generic", "probe", "-n", "kube-system", "--dry-run=server")
			return err
		})
		wrong, _ := findings(t, p, p.Client)
		want(t, wrong, "drover's rights: drover may not: get nodes, list nodes, watch nodes, patch nodes, delete nodes, get certificatesigningrequests, "+
			"list certificatesigningrequests, watch certificatesigningrequests, update certificatesigningrequests/approval, approve signers/kubernetes.io/kube-apiserver-client-kubelet, "+
			"create leases in drover-used-tokens, get leases in drover-used-tokens, list leases in drover-used-tokens, delete leases in drover-used-tokens",
			"policy of certificates: see ValidatingAdmissionPolicyBinding drover-only-its-requests: deploy/rbac.yaml is not applied as of this version",
			"renewal: see ClusterRoleBinding drover-node-renewal: deploy/rbac.yaml is not applied as of this version",
			"join tokens: the cluster's own approver signs whatever the holder of a join token asks for",
			"policy of join tokens: drover could make any Secret of kube-system",
			"rights of a joining node: the group system:bootstrappers:drover:node may not: get configmaps/kubeadm-config in kube-system; drover cluster prepare",
			"kubeadm-config: a joining node cannot read it", `kubelet-config: its authentication.x509.clientCAFile is "/tmp/ca.crt"`)
	})
	t.Run("prepared anew", func(t *testing.T) {
		manifest, err := os.ReadFile(rbac)
		if err != nil {
			t.Fatal(err)
		}
		applied := 0
		if err := inspect.Apply(t.Context(), p.Admin, manifest, func(string) { applied++ }); err != nil {
			t.Fatal(err)
		}
		if want := strings.Count(string(manifest), "\nkind: "); applied != want {
			t.Errorf("%d objects applied, want %d", applied, want)
		}
		fixture.Retry(t, "drover's rights are back", func() error {
			if _, err := p.KubectlAs(t.Context(), p.Client, nil, "get", "nodes"); err != nil {
				return err
			}
			_, err := p.KubectlAs(t.Context(), p.Client, nil, "create", "secret", "generic", "probe", "-n", "kube-system", "--dry-run=server")
			if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				return fmt.Errorf("policy not in force: %w", err)
			}
			return nil
		})
		if err := inspect.Apply(t.Context(), p.Client, manifest, func(string) {}); err == nil {
			t.Error("drover has given itself rights")
		}
	})
}
