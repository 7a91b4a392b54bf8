package hosted_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/pools"
	"drover/tenants"
)

func (f *farm) testAdministrator(t *testing.T) {
	text, err := tenants.Kubeconfig(t.Context(), f.load(f.admin.Admin), namespace, "tenant-a")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "admin.conf")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"create", "configmap", "kept", "-n", "default"}, {"auth", "can-i", "*", "*", "--all-namespaces"}} {
		if _, err := f.admin.KubectlAs(t.Context(), path, nil, args...); err != nil {
			t.Error(err)
		}
	}
	out, err := f.admin.KubectlAs(t.Context(), path, nil, "auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}")
	if err != nil || strings.Contains(out, "system:masters") {
		t.Errorf("groups %s, %v: want none that cannot be taken away", out, err)
	}
	// The tenant's administrator has no way into the admin cluster.
	_, err = f.admin.KubectlAs(t.Context(), path, nil, "get", "secrets", "-n", namespace, "--server=https://"+f.admin.Endpoint(), "--insecure-skip-tls-verify")
	if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("the admin cluster answers the tenant's administrator: %v", err)
	}
	if _, err := tenants.Kubeconfig(t.Context(), f.load(f.admin.Admin), namespace, "none"); err == nil || !strings.Contains(err.Error(), "there is no Secret farm/none-admin") {
		t.Errorf("got %v", err)
	}
}

// clusters returns drover's clusters with its own kubeconfig for the tenant, from the Secret.
func (f *farm) clusters(t *testing.T) *kube.Clusters {
	c := &kube.Clusters{Key: []byte("of this test, and long enough to seal"), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Admin: f.drover}
	c.Set([]pools.Cluster{{Name: "tenant-a", SecretRef: pools.SecretRef{Namespace: namespace, Name: "tenant-a-kubeconfig"}}})
	t.Cleanup(c.Close)
	return c
}

// testCheck checks the tenant as "drover cluster check" does.
func (f *farm) testCheck(t *testing.T) {
	found, err := f.clusters(t).Inspect(t.Context(), "tenant-a")
	if err != nil {
		t.Fatal(err)
	}
	agents := ""
	for _, finding := range found {
		if !finding.OK {
			t.Errorf("%s: %s", finding.What, finding.Detail)
		}
		if finding.What == "konnectivity" {
			agents = finding.Detail
		}
	}
	if len(found) < 8 || agents != "no node needs an agent yet" {
		t.Errorf("findings %+v", found)
	}
}

// testAgents adds a Node whose agent connects late.
func (f *farm) testAgents(t *testing.T) {
	admin := kubernetes.NewForConfigOrDie(f.load(f.file(t, "tenant-a-admin")))
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"kubernetes.io/os": "linux"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	agents := metav1.ListOptions{LabelSelector: "k8s-app=konnectivity-agent"}
	pod := ""
	fixture.Eventually(t, "the agent's pod is there", func() bool {
		pods, err := admin.CoreV1().Pods("kube-system").List(t.Context(), agents)
		if err != nil || len(pods.Items) == 0 {
			return false
		}
		pod = pods.Items[0].Name
		return true
	})
	fixture.Retry(t, "drover cluster check reports it", func() error {
		found, err := f.clusters(t).Inspect(t.Context(), "tenant-a")
		for _, finding := range found {
			if finding.What == "konnectivity" && !finding.OK && strings.Contains(finding.Detail, "no agent is connected") {
				return nil
			}
		}
		return fmt.Errorf("findings %+v, %v", found, err)
	})
	f.stop() // the next round comes in 30 seconds, or with a new controller
	f.start()
	f.controller.Set([]pools.Cluster{cluster("tenant-a")})
	f.until("tenant-a", "the status says that no agent is connected", func(s tenants.Status) bool {
		c := s.Condition(tenants.AgentsConnected)
		return c != nil && c.Reason == "NoAgent" && s.Nodes == 1 && s.NodesReady == 0
	})
	const ready = `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`
	if _, err := admin.CoreV1().Pods("kube-system").Patch(t.Context(), pod, types.StrategicMergePatchType, []byte(ready), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	f.until("tenant-a", "an agent is connected", func(s tenants.Status) bool {
		c := s.Condition(tenants.AgentsConnected)
		return c != nil && c.Status == metav1.ConditionTrue && s.Agents == 1
	})
	if err := admin.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// testAddons turns add-ons off and on.
func (f *farm) testAddons(t *testing.T, tenant pools.Cluster) {
	path := f.file(t, "tenant-a-admin")
	workloads := func() string {
		out, err := f.admin.KubectlAs(t.Context(), path, nil, "get", "daemonsets,deployments", "-A", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err.Error()
		}
		return out
	}
	if got, want := workloads(), "flannel konnectivity-agent kube-proxy coredns"; got != want {
		t.Errorf("workloads %q, want %q", got, want)
	}
	off := false
	f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Addons = pools.Addons{KubeProxy: &off, CoreDNS: &off, Flannel: &off} })})
	fixture.Eventually(t, "add-ons are removed", func() bool { return workloads() == "konnectivity-agent" })
	f.controller.Set([]pools.Cluster{tenant})
	fixture.Eventually(t, "add-ons are back", func() bool { return workloads() == "flannel konnectivity-agent kube-proxy coredns" })
}

// testJoin does what kubeadm join and a kubelet do with a token of kubeadm's own: it reads
// the objects of the tenant, and gets a certificate.
func (f *farm) testJoin(t *testing.T) {
	f.wantKubeadmJoin(t, f.file(t, "tenant-a-admin"), "10.231.0.2:6443")
}

func (f *farm) wantKubeadmJoin(t *testing.T, admin, endpoint string) {
	t.Helper()
	kubeadm := filepath.Join(f.admin.BinDir, "kubeadm")
	made, err := exec.CommandContext(t.Context(), kubeadm, "--kubeconfig", admin, "token", "create", "--print-join-command").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	out := string(made)
	words := strings.Fields(out) // kubeadm join HOST:PORT --token T --discovery-token-ca-cert-hash H
	if len(words) < 7 || words[2] != endpoint {
		t.Fatalf("join command %q", out)
	}
	// A dry run that comes before the signature of the token waits for that of another one.
	id, _, _ := strings.Cut(words[4], ".")
	fixture.Eventually(t, "cluster-info is signed with the token", func() bool {
		info, err := f.admin.KubectlAs(t.Context(), admin, nil, "get", "configmap", "cluster-info", "-n", "kube-public", "-o", "jsonpath={.data.jws-kubeconfig-"+id+"}")
		return err == nil && info != ""
	})
	// The discovery of a node: cluster-info is signed with the token, and its CA is pinned.
	join := func(words []string) (string, error) {
		cmd := exec.CommandContext(t.Context(), kubeadm, append(words[1:], "--dry-run", "--node-name=n1", "--cri-socket=unix:///none", "--ignore-preflight-errors=all")...)
		cmd.Env = append(os.Environ(), "KUBEADM_JOIN_DRYRUN_DIR="+t.TempDir())
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	fixture.Retry(t, "kubeadm reads all that it needs", func() error {
		said, err := join(words)
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		return nil
	})
	words[6] = "sha256:" + strings.Repeat("0", 64)
	if said, err := join(words); err == nil || !strings.Contains(said, "none of the public keys") {
		t.Errorf("with another CA: %v, %s", err, said)
	}
}
