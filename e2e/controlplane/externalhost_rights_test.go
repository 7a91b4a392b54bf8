package controlplane_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/externalhost"
)

// testHostRights tries the credentials of a host, and those of drover, with real calls.
// That flannel and kube-proxy have all that they need is shown by TestExternalHost of e2e.
func testHostRights(t *testing.T, p *controlplane.Cluster, c *kube.Clusters) {
	h, err := c.Hosts(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	var got *externalhost.Credentials
	fixture.Retry(t, "the host has credentials", func() (err error) {
		got, err = h.Credentials(t.Context(), "legacy003", time.Hour)
		return err
	})
	if d := time.Until(got.Expires); d > 61*time.Minute || got.Server != "https://"+p.Endpoint() || len(got.CA) == 0 {
		t.Errorf("credentials for %v, of %s, with a CA of %d bytes", d, got.Server, len(got.CA))
	}
	file := filepath.Join(t.TempDir(), "host.kubeconfig")
	if err := p.WriteKubeconfig(file, got.Token); err != nil {
		t.Fatal(err)
	}
	const own, tokens, role = "ValidatingAdmissionPolicy 'drover-host-credentials'", "ValidatingAdmissionPolicy 'drover-host-tokens'", "cannot "
	const makes = "ValidatingAdmissionPolicy 'drover-only-its-hosts'"
	const leases = "ValidatingAdmissionPolicy 'drover-only-host-leases'"
	fixture.Retry(t, "the policies are in force", func() error {
		_, err := p.KubectlAs(t.Context(), file, nil, "create", "token", "legacy004", "-n", "drover-hosts")
		if err == nil || !strings.Contains(err.Error(), tokens) {
			return fmt.Errorf("another host's token: %w", err)
		}
		return nil
	})
	tries(t, p, file, []try{
		{"get nodes", "", ""},
		{"get services -A", "", ""},
		{"get endpointslices -A", "", ""},
		{"create token legacy003 -n drover-hosts --duration 24h", "", ""},
		{"patch-status legacy003 " + `{"metadata":{"annotations":{"flannel.alpha.coreos.com/backend-type":"vxlan"}}}`, "", ""},
		{"patch-status legacy003 " + `{"metadata":{"annotations":{"flannel.alpha.coreos.com/backend-type":null}}}`, "", ""},

		{"patch-status legacy004 " + `{"metadata":{"annotations":{"flannel.alpha.coreos.com/backend-type":"vxlan"}}}`, "", own},
		{"patch-status node0 " + `{"metadata":{"annotations":{"flannel.alpha.coreos.com/backend-type":"vxlan"}}}`, "", own},
		{"patch-status drover-host-range " + `{"metadata":{"annotations":{"flannel.alpha.coreos.com/backend-type":"vxlan"}}}`, "", own},
		{"patch-status legacy003 " + `{"metadata":{"annotations":{"other":"x"}}}`, "", own},
		{"patch-status legacy003 " + `{"metadata":{"annotations":{"drover/occupied-at":"x"}}}`, "", own},
		{"patch-status legacy003 " + `{"metadata":{"annotations":{"flannel.alpha.coreos.com/public-ip-overwrite":"192.0.2.99"}}}`, "", own},
		{"patch-status legacy003 " + `{"metadata":{"labels":{"drover/external-host":null}}}`, "", own},
		{"patch-status legacy003 " + `{"metadata":{"labels":{"a":"b"}}}`, "", own},
		{"patch-status legacy003 " + `{"metadata":{"finalizers":["x.org/x"]}}`, "", own},
		{"patch-status legacy003 " + `{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.99"}]}}`, "", own},
		{"patch-status legacy003 " + `{"status":{"allocatable":{"pods":"110"},"capacity":{"pods":"110"}}}`, "", own},
		{"patch-status legacy003 " + `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":22}}}}`, "", own},
		{"patch-status legacy003 " + `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, "", own},
		{"create token legacy004 -n drover-hosts", "", tokens},
		{"create token legacy003 -n drover-hosts --duration 8760h", "", tokens},
		{"create token default -n drover-hosts", "", tokens},
		{"create token drover -n kube-system", "", role},
		{"label node legacy003 a=b", "", role},
		{"taint node legacy003 drover/external-host-", "", role},
		{`patch node legacy003 -p {"spec":{"unschedulable":null}}`, "", role},
		{"delete node legacy003", "", role},
		{"delete node legacy004", "", role},
		{"create -f -", "{apiVersion: v1, kind: Node, metadata: {name: x}}", role},
		{"get pods -A", "", role},
		{"run x --image=x", "", role},
		{"get secrets -A", "", role},
		{"get secrets -n kube-system", "", role},
		{"get secrets -n drover-hosts", "", role},
		{"get serviceaccounts -n drover-hosts", "", role},
		{"create serviceaccount x -n drover-hosts", "", role},
		{"delete serviceaccount legacy004 -n drover-hosts", "", role},
		{"get configmaps -A", "", role},
		{"get configmap kubeadm-config -n kube-system", "", role},
		{"get leases -n kube-node-lease", "", role},
		{"get lease legacy003 -n kube-node-lease", "", role},
		{"get namespaces", "", role},
		{"get events -A", "", role},
		{"create service clusterip x --tcp=80", "", role},
		{"delete service kubernetes -n default", "", role},
		{"get --raw /api/v1/nodes/node0/proxy/pods", "", role},
		{"get csr", "", role},
		{"get clusterroles", "", role},
		{"get clusterrolebindings", "", role},
		{"get validatingadmissionpolicies", "", role},
		{"get nodes --as=system:admin", "", role},
		{"get nodes --as=system:serviceaccount:drover-hosts:legacy004", "", role},
	})
	const host = `{apiVersion: v1, kind: Node, metadata: {name: x, labels: {drover/external-host: "%s"%s}}, spec: {podCIDR: 10.244.255.240/28, providerID: "drover://x/x", unschedulable: %s, taints: [{key: %s, effect: NoExecute}]}, status: {allocatable: {pods: "%s"}}}`
	tries(t, p, p.Client, []try{
		{"create --dry-run=server -f -", fmt.Sprintf(host, "true", "", "true", "drover/external-host", "0"), ""},
		{"create --dry-run=server -f -", fmt.Sprintf(host, "false", "", "true", "drover/external-host", "0"), "ValidatingAdmissionPolicy 'drover-only-its-nodes'"},
		{"create --dry-run=server -f -", fmt.Sprintf(host, "true", ", drover/managed: 'true'", "true", "drover/external-host", "0"), makes},
		{"create --dry-run=server -f -", fmt.Sprintf(host, "true", ", node-role.kubernetes.io/control-plane: ''", "true", "drover/external-host", "0"), makes},
		{"create --dry-run=server -f -", fmt.Sprintf(host, "true", "", "false", "drover/external-host", "0"), makes},
		{"create --dry-run=server -f -", fmt.Sprintf(host, "true", "", "true", "other", "0"), makes},
		{"create --dry-run=server -f -", fmt.Sprintf(host, "true", "", "true", "drover/external-host", "110"), makes},
		{"create -f -", "{apiVersion: v1, kind: Node, metadata: {name: x}}", "ValidatingAdmissionPolicy 'drover-only-its-"},
		{"label node node0 drover/external-host=true", "", "ValidatingAdmissionPolicy 'drover-only-its-nodes'"},
		{"label node legacy003 drover/external-host-", "", "ValidatingAdmissionPolicy 'drover-only-its-nodes'"},
		{`patch node legacy003 -p {"spec":{"unschedulable":null}}`, "", makes},
		{"taint node legacy003 drover/external-host-", "", makes},
		{"annotate node legacy003 other=x", "", makes},
		{"delete node node0 --wait=false", "", "ValidatingAdmissionPolicy 'drover-only-its-nodes'"},
		{"patch-status node0 " + `{"status":{"conditions":[]}}`, "", makes},
		{"patch-status legacy003 " + `{"status":{"allocatable":{"pods":"110"}}}`, "", makes},
		{"create -f -", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: node0, namespace: kube-node-lease}}", leases},
		{"get secrets -n drover-hosts", "", role},
		{"create token drover -n kube-system", "", ""}, // its own, see deploy/rbac.yaml
		{"create token default -n default", "", role},
		{"create serviceaccount x -n kube-system", "", role},
		{"create serviceaccount x -n default", "", role},
	})
}
