package plane_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"drover/e2e/plane"
)

// secret returns the manifest of a Secret of kube-system.
func secret(name, kind string, data map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\n  namespace: kube-system\n", name)
	if kind == "kubernetes.io/service-account-token" {
		b.WriteString("  annotations: {kubernetes.io/service-account.name: clusterrole-aggregation-controller}\n")
	}
	fmt.Fprintf(&b, "type: %s\nstringData:\n", kind)
	for k, v := range data {
		fmt.Fprintf(&b, "  %s: %q\n", k, v)
	}
	return b.String()
}

// The rights of deploy/rbac.yaml: each call is made for real. That what drover
// needs is allowed shows in testJoin.
func testRights(t *testing.T, p *plane.Plane) {
	const bootstrap = "bootstrap.kubernetes.io/token"
	good := map[string]string{
		"token-id": "aaaaaa", "token-secret": "0123456789abcdef", "expiration": "2099-01-01T00:00:00Z",
		"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token", "usage-bootstrap-authentication": "true",
	}
	without := func(key string) map[string]string {
		m := maps.Clone(good)
		delete(m, key)
		return m
	}
	otherGroup := maps.Clone(good)
	otherGroup["auth-extra-groups"] = "system:bootstrappers:other"

	if _, err := p.Kubectl(t.Context(), strings.NewReader(secret("other", "Opaque", good)), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	const policy, role = "ValidatingAdmissionPolicy 'drover-only-join-tokens'", "cannot "
	tests := []struct {
		call string // of kubectl
		in   string
		want string // in the error; empty: allowed
	}{
		{"create -f -", secret("bootstrap-token-aaaaaa", bootstrap, good), ""},
		{"delete secret bootstrap-token-aaaaaa -n kube-system --wait=false", "", ""},
		{"get configmap cluster-info -n kube-public", "", ""},
		{"get nodes", "", ""},

		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, without("expiration")), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, without("auth-extra-groups")), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, otherGroup), policy},
		{"create -f -", secret("sa", "kubernetes.io/service-account-token", nil), policy},
		{"create -f -", secret("opaque", "Opaque", good), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", "Opaque", good), policy},
		{"create secret generic x -n default", "", role},
		{"delete secret other -n kube-system --wait=false", "", policy},
		{"delete secrets --all -n kube-system --wait=false", "", role},
		{"get secrets -n kube-system", "", role},
		{"get secrets -A", "", role},
		{"get secret other -n kube-system", "", role},
		{"get secret bootstrap-token-aaaaaa -n kube-system", "", role},

		{"get configmaps -n kube-public", "", role},
		{"get configmap kubeadm-config -n kube-system", "", role},
		{"create configmap x -n kube-public", "", role},

		{"delete node x", "", role},
		{"create -f -", "apiVersion: v1\nkind: Node\nmetadata: {name: x}\n", role},
		{"get --raw /api/v1/nodes/x/proxy/pods", "", role},
		{"get pods -A", "", role},
		{"delete pod x", "", role},
		{"run x --image=x", "", role},
		{"create namespace x", "", role},
		{"get csr", "", role},
		{"create token default", "", role},
		{"create token drover -n kube-system", "", role},
		{"get clusterroles", "", role},
		{"create clusterrolebinding x --clusterrole=cluster-admin --user=x", "", role},
		{"delete validatingadmissionpolicy drover-only-join-tokens --wait=false", "", role},
		{"delete validatingadmissionpolicybinding drover-only-join-tokens --wait=false", "", role},
		{"get nodes --as=system:admin", "", role},
		{"get nodes --as=x --as-group=system:masters", "", role},
	}
	for _, tt := range tests {
		name := tt.call
		if tt.in != "" {
			name += " " + strings.Join(strings.Fields(tt.in), " ")
		}
		t.Run(name, func(t *testing.T) {
			out, err := p.KubectlAs(t.Context(), p.Client, strings.NewReader(tt.in), strings.Fields(tt.call)...)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && err == nil:
				t.Errorf("allowed: %s", out)
			case tt.want != "" && !strings.Contains(err.Error(), tt.want):
				t.Errorf("refused, but not as it should be by %s: %v", tt.want, err)
			}
		})
	}

	// kubectl reads before it does these, and would be refused for that.
	for _, what := range []string{
		"update secrets", "patch secrets", "watch secrets", "deletecollection secrets",
		"update configmaps/cluster-info -n kube-public", "patch configmaps/cluster-info -n kube-public",
		"update nodes", "patch nodes --subresource=status", "update nodes --subresource=status",
		"create pods --subresource=eviction", "create pods --subresource=binding",
		"approve signers.certificates.k8s.io", "update certificatesigningrequests --subresource=approval",
		"escalate clusterroles", "bind clusterroles", "update leases", "* *.*",
	} {
		args := append([]string{"auth", "can-i", "-n", "kube-system"}, strings.Fields(what)...)
		if out, err := p.KubectlAs(t.Context(), p.Client, nil, args...); err == nil || !strings.HasPrefix(out, "no") {
			t.Errorf("%s: %q, want no (%v)", what, out, err)
		}
	}
}
