package controlplane_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"drover/e2e/controlplane"
	"drover/kube/approve"
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

// The limits of deploy/rbac.yaml are tested with real calls. testJoin shows that drover's
// necessary calls are allowed.
func testRights(t *testing.T, p *controlplane.Cluster) {
	const bootstrap = "bootstrap.kubernetes.io/token"
	ours := "system:bootstrappers:drover:node,system:bootstrappers:drover:boot:" + strings.Repeat("0123456789abcdef", 4) + "01234567"
	good := map[string]string{
		"token-id": "aaaaaa", "token-secret": "0123456789abcdef", "expiration": "2099-01-01T00:00:00Z",
		"auth-extra-groups": ours, "usage-bootstrap-authentication": "true",
	}
	without := func(key string) map[string]string {
		m := maps.Clone(good)
		delete(m, key)
		return m
	}
	inGroups := func(groups string) map[string]string {
		m := maps.Clone(good)
		m["auth-extra-groups"] = groups
		return m
	}
	const kubeadms = "system:bootstrappers:kubeadm:default-node-token"

	if _, err := p.Kubectl(t.Context(), strings.NewReader(secret("other", "Opaque", good)), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, labels := range []string{"name: mine, labels: {drover/managed: 'true'}, annotations: {person: me}", "name: theirs", "name: cp, labels: {drover/managed: 'true', node-role.kubernetes.io/control-plane: ''}"} {
		if _, err := p.Kubectl(t.Context(), strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {"+labels+"}\n"), "create", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	lease := "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: mine, namespace: kube-node-lease}\n"
	if _, err := p.Kubectl(t.Context(), strings.NewReader(lease), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	record := strings.ReplaceAll(lease, "kube-node-lease", approve.UsedNamespace)
	const policy, nodePolicy, role = "ValidatingAdmissionPolicy 'drover-only-join-tokens'", "ValidatingAdmissionPolicy 'drover-only-its-nodes'", "cannot "
	tries(t, p, p.Client, []try{
		{"create -f -", secret("bootstrap-token-aaaaaa", bootstrap, good), ""},
		{"delete secret bootstrap-token-aaaaaa -n kube-system --wait=false", "", ""},
		{"get configmap cluster-info -n kube-public", "", ""},
		{"get nodes", "", ""},

		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, without("expiration")), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, without("auth-extra-groups")), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, inGroups("system:bootstrappers:other")), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, inGroups("system:bootstrappers:drover:node")), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, inGroups(kubeadms)), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, inGroups(ours+","+kubeadms)), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, inGroups(ours[:len(ours)-48]+","+kubeadms)), policy},
		{"create -f -", secret("bootstrap-token-bbbbbb", bootstrap, inGroups(kubeadms+","+ours)), policy},
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

		{"label node mine a=b", "", ""},
		{"label node mine node-role.kubernetes.io/x=", "", ""},
		{"label node mine a-", "", ""},
		{"annotate node mine drover/labels=a", "", ""},
		{"taint node mine foo=bar:NoSchedule", "", ""},
		{"taint node mine foo-", "", ""},
		{"get lease mine -n kube-node-lease", "", ""},

		{"label node theirs a=b", "", nodePolicy},
		{"label node theirs drover/managed=true", "", nodePolicy},
		{"annotate node theirs drover/labels=a", "", nodePolicy},
		{"taint node theirs foo=bar:NoSchedule", "", nodePolicy},
		{"delete node theirs --wait=false", "", nodePolicy},
		{"label node cp a=b", "", nodePolicy},
		{"label node cp node-role.kubernetes.io/control-plane-", "", nodePolicy},
		{"delete node cp --wait=false", "", nodePolicy},
		{"label node mine drover/managed-", "", nodePolicy},
		{"label node mine drover/managed=x --overwrite", "", nodePolicy},
		{"label node mine node-role.kubernetes.io/control-plane=", "", nodePolicy},
		{"label node mine node-role.kubernetes.io/master=", "", nodePolicy},
		{"annotate node mine other=x", "", nodePolicy},
		{"annotate node mine person=you --overwrite", "", nodePolicy},
		{"annotate node mine person-", "", nodePolicy},
		{`patch node mine -p {"spec":{"unschedulable":true}}`, "", ""},
		{`patch node mine -p {"spec":{"unschedulable":null}}`, "", ""},
		{`patch node theirs -p {"spec":{"unschedulable":true}}`, "", nodePolicy},
		{"taint node mine node.kubernetes.io/unreachable:NoExecute", "", nodePolicy},
		{`patch node mine -p {"spec":{"providerID":"x"}}`, "", nodePolicy},
		{`patch node mine -p {"metadata":{"finalizers":["x.org/x"]}}`, "", nodePolicy},
		{`patch node mine -p {"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"x"}]}}`, "", nodePolicy},
		{"delete --raw /api/v1/nodes", "", role},
		{"create -f -", "apiVersion: v1\nkind: Node\nmetadata: {name: x}\n", role},
		{"create -f -", "apiVersion: v1\nkind: Node\nmetadata: {name: x, labels: {drover/managed: 'true'}}\n", role},
		{"delete node mine --wait=false", "", ""},

		{"create -f -", record, ""},
		{"create -f -", record, "AlreadyExists"},
		{"get lease mine -n drover-used-tokens", "", ""},
		{"get leases -n drover-used-tokens", "", ""},
		{"replace -f -", record, role},
		{`patch lease mine -n drover-used-tokens -p {"spec":{"holderIdentity":"x"}}`, "", role},
		{"delete --raw /apis/coordination.k8s.io/v1/namespaces/drover-used-tokens/leases", "", role},
		{"delete lease mine -n drover-used-tokens --wait=false", "", ""},
		{"create configmap x -n drover-used-tokens", "", role},
		{"delete namespace drover-used-tokens --wait=false", "", role},

		{"get leases -n kube-node-lease", "", role},
		{"delete lease mine -n kube-node-lease", "", role},
		{"get lease x -n kube-system", "", role},
		{"get --raw /api/v1/nodes/x/proxy/pods", "", role},
		{"get pods -A", "", ""},
		{"get pod x", "", role},
		{"delete pod x", "", role},
		{"run x --image=x", "", role},
		{"create namespace x", "", role},
		{"get csr", "", ""},
		{"create -f -", requestManifest(t, "kubernetes.io/kube-apiserver-client-kubelet", "client auth", "m1"), role},
		{"get clusterrolebinding drover-node-renewal", "", ""},
		{"get clusterrolebinding cluster-admin", "", role},
		{"get clusterrolebindings", "", role},
		{"get validatingadmissionpolicies", "", role},
		{"create token default", "", role},
		{"create token default -n kube-system", "", role},
		{"create token bootstrap-signer -n kube-system", "", role},
		{"create token drover -n kube-public", "", role},
		{"create token drover -n kube-system", "", ""}, // its own
		{"get clusterroles", "", role},
		{"create clusterrolebinding x --clusterrole=cluster-admin --user=x", "", role},
		{"delete validatingadmissionpolicy drover-only-join-tokens --wait=false", "", role},
		{"delete validatingadmissionpolicybinding drover-only-join-tokens --wait=false", "", role},
		{"delete validatingadmissionpolicy drover-only-its-nodes --wait=false", "", role},
		{"delete validatingadmissionpolicy drover-only-its-requests --wait=false", "", role},
		{"delete validatingadmissionpolicybinding drover-only-its-requests --wait=false", "", role},
		{"delete validatingadmissionpolicybinding drover-only-its-nodes --wait=false", "", role},
		{"get nodes --as=system:admin", "", role},
		{"get nodes --as=x --as-group=system:masters", "", role},
	})

	// kubectl reads before these calls, which is not allowed either.
	for _, what := range []string{
		"update secrets", "patch secrets", "watch secrets", "deletecollection secrets",
		"update configmaps/cluster-info -n kube-public", "patch configmaps/cluster-info -n kube-public",
		"update nodes", "patch nodes --subresource=status", "update nodes --subresource=status",
		"create pods --subresource=binding", "get pods --subresource=log", "create pods --subresource=exec",
		"get pods", "watch pods", "create pods", "update pods", "patch pods", "delete pods", "deletecollection pods",
		"approve signers.certificates.k8s.io", "approve signers.certificates.k8s.io/kubernetes.io/kube-apiserver-client",
		"sign signers.certificates.k8s.io", "attest signers.certificates.k8s.io", "patch certificatesigningrequests --subresource=approval",
		"update certificatesigningrequests --subresource=status", "update certificatesigningrequests", "delete certificatesigningrequests",
		"escalate clusterroles", "bind clusterroles", "update leases", "* *.*",
		"update leases -n drover-used-tokens", "patch leases -n drover-used-tokens", "watch leases -n drover-used-tokens",
		"update leases -n kube-node-lease", "patch leases -n kube-node-lease", "watch leases -n kube-node-lease",
	} {
		args := append([]string{"auth", "can-i", "-n", "kube-system"}, strings.Fields(what)...)
		if out, err := p.KubectlAs(t.Context(), p.Client, nil, args...); err == nil || !strings.HasPrefix(out, "no") {
			t.Errorf("%s: %q, want no (%v)", what, out, err)
		}
	}
}

// try is a call of kubectl.
type try struct {
	call string // its arguments
	in   string // its standard input
	want string // in the error; empty: allowed
}

// tries makes calls with the credentials of a kubeconfig file.
func tries(t *testing.T, p *controlplane.Cluster, kubeconfig string, tests []try) {
	for _, tt := range tests {
		name := tt.call
		if tt.in != "" {
			name += " " + strings.Join(strings.Fields(tt.in), " ")
		}
		t.Run(name, func(t *testing.T) {
			call := p.KubectlAs
			if strings.HasPrefix(tt.call, "patch-status ") {
				call = patchStatus
			}
			out, err := call(t.Context(), kubeconfig, strings.NewReader(tt.in), strings.Fields(tt.call)...)
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
}

// patchStatus patches the status of a Node, as patch-status NODE PATCH. Unlike kubectl it
// does not read it first.
func patchStatus(ctx context.Context, kubeconfig string, _ io.Reader, args ...string) (string, error) {
	conf, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return "", err
	}
	n, err := client.CoreV1().Nodes().Patch(ctx, args[1], types.MergePatchType, []byte(args[2]), metav1.PatchOptions{}, "status")
	return n.String(), err
}
