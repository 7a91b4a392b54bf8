package controlplane_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/cluster"
	"drover/kube/node"
	"drover/pools"
	"drover/pools/resolve"
)

// planOf is a farm whose machines keep their names.
type planOf func(node string) *resolve.Plan

func (f planOf) Named(node string) *resolve.Plan { return f(node) }
func (f planOf) Booting(string) bool             { return true }

// droverKey is of all drovers of this test, as if they were one.
var droverKey = []byte("the key of the drovers of this test")

// clusters returns drover's clusters, and the nodes that become Ready.
func clusters(t *testing.T, ttl time.Duration, planes ...*controlplane.Cluster) (*kube.Clusters, <-chan string) {
	return clustersWith(t, ttl, func(*kube.Clusters) {}, planes...)
}

// clustersWith is clusters with other settings.
func clustersWith(t *testing.T, ttl time.Duration, edit func(*kube.Clusters), planes ...*controlplane.Cluster) (*kube.Clusters, <-chan string) {
	ready := make(chan string, 100)
	c := &kube.Clusters{
		Log:        slog.New(slog.NewTextHandler(t.Output(), nil)),
		OnReady:    func(p *resolve.Plan, _ time.Time) { ready <- p.Node },
		StartLoops: true,
		Key:        droverKey,
	}
	edit(c)
	var conf []pools.Cluster
	for _, p := range planes {
		conf = append(conf, pools.Cluster{Name: p.Name, Kubeconfig: p.Client, Token: pools.TokenPolicy{TTL: pools.Duration(ttl)}})
	}
	c.Set(conf)
	t.Cleanup(c.Close)
	return c, ready
}

// join asks for a node's join and returns its token.
func join(t *testing.T, c *kube.Clusters, p *resolve.Plan, bootID string) (token, config string) {
	t.Helper()
	got, err := c.Join(t.Context(), p, netip.MustParseAddr("10.28.36.173"), bootID)
	if err != nil {
		t.Fatal(err)
	}
	if token = tokenIn(got.Kubeadm); token == "" {
		t.Fatal("no token in the JoinConfiguration")
	}
	return token, got.Kubeadm
}

// tokenIn returns the token of a JoinConfiguration, if it has one.
func tokenIn(config string) string {
	m := regexp.MustCompile(`token: ([a-z0-9]{6}\.[a-z0-9]{16})\n`).FindStringSubmatch(config)
	if m == nil {
		return ""
	}
	return m[1]
}

// testJoin does what a kubelet does, from the answer to its join request to Ready.
func testJoin(t *testing.T, a, b *controlplane.Cluster) {
	c, ready := clusters(t, 0, a, b)
	for name, err := range c.Check(t.Context()) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	plan := &resolve.Plan{Node: "m1c29", Cluster: a.Name, Settings: resolve.Settings{
		Labels: map[string]string{"pool": "web", "node-role.kubernetes.io/web": ""},
		Taints: []pools.Taint{{Key: "foo", Value: "bar", Effect: "NoSchedule"}},
	}}
	token, config := join(t, c, plan, "boot-1")
	validate(t, a, config)

	node := bootstrap(t, a, "m1c29", token)
	t.Run("token in the other tenant", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := b.WriteKubeconfig(path, token); err != nil {
			t.Fatal(err)
		}
		if out, err := b.KubectlAs(t.Context(), path, nil, "auth", "whoami"); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
			t.Errorf("%q, %v; want Unauthorized", out, err)
		}
	})

	register(t, a, node, plan.Node)
	t.Run("labels", func(t *testing.T) { testLabels(t, a, node, plan.Node) })
	beat(t, a, node, plan.Node, "boot-1", "False")
	beat(t, a, node, plan.Node, "boot-1", "True")
	if got := <-ready; got != plan.Node {
		t.Errorf("%q is Ready, want %q", got, plan.Node)
	}
	labels := nodeLabels(t, a, plan.Node)
	if _, ok := labels["node-role.kubernetes.io/web"]; !ok || labels["pool"] != "web" {
		t.Errorf("labels of the Ready node: %v", labels)
	}
	if tokens := droverTokens(t, a); tokens != "" {
		t.Errorf("tokens left after Ready: %s", tokens)
	}
}

// validate checks the JoinConfiguration with kubeadm.
func validate(t *testing.T, p *controlplane.Cluster, config string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "join.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(p.BinDir, "kubeadm"), "config", "validate", "--config", path).CombinedOutput()
	if err != nil || strings.Contains(string(out), "unknown field") {
		t.Errorf("kubeadm config validate: %v: %s", err, out)
	}
}

// bootstrap gets the certificate of a kubelet with a token, as a kubelet does,
// and returns its kubeconfig.
func bootstrap(t *testing.T, p *controlplane.Cluster, name, token string) (kubeconfig string) {
	t.Helper()
	dir := t.TempDir()
	withToken := filepath.Join(dir, "bootstrap.conf")
	if err := p.WriteKubeconfig(withToken, token); err != nil {
		t.Fatal(err)
	}
	object, key := ask(t, p, withToken, name)
	return withCert(t, p, dir, certificate(t, p, withToken, object), key)
}

// withCert writes a kubeconfig with a client certificate, which is in base64.
func withCert(t *testing.T, p *controlplane.Cluster, dir, cert string, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kubelet.conf")
	if err := p.WriteKubeconfig(path, "x"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	user := fmt.Sprintf("\"client-certificate-data\": %q, \"client-key-data\": %q", cert,
		base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	text = bytes.Replace(text, []byte(`"token": "x"`), []byte(user), 1)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// register makes the Node, as its kubelet does.
func register(t *testing.T, p *controlplane.Cluster, kubeconfig, name string) {
	t.Helper()
	node := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "labels": {"drover/managed": "true", "pool": "web"}},
		"spec": {"taints": [{"key": "foo", "value": "bar", "effect": "NoSchedule"}]}}`, name)
	if _, err := p.KubectlAs(t.Context(), kubeconfig, strings.NewReader(node), "create", "--validate=false", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// beat reports the Node's status, as its kubelet does. It replaces the Node, since
// kubectl patch would read nodes/status first, which a kubelet may not; and does
// so again when a controller has changed the taints since it was read.
func beat(t *testing.T, p *controlplane.Cluster, kubeconfig, name, bootID, ready string) {
	t.Helper()
	fixture.Retry(t, "status reported", func() error {
		text, err := p.KubectlAs(t.Context(), kubeconfig, nil, "get", "node", name, "-o", "json")
		var node map[string]any
		if err == nil {
			err = json.Unmarshal([]byte(text), &node)
		}
		if err != nil {
			return err
		}
		now := time.Now().UTC().Format(time.RFC3339)
		node["status"] = map[string]any{
			"nodeInfo":   map[string]any{"bootID": bootID},
			"conditions": []any{map[string]any{"type": "Ready", "status": ready, "lastHeartbeatTime": now, "lastTransitionTime": now}},
		}
		delete(node["metadata"].(map[string]any), "resourceVersion") // the controllers write too
		body, err := json.Marshal(node)
		if err == nil {
			_, err = p.KubectlAs(t.Context(), kubeconfig, bytes.NewReader(body), "replace", "--raw", "/api/v1/nodes/"+name+"/status", "-f", "-")
		}
		return err
	})
}

func nodeLabels(t *testing.T, p *controlplane.Cluster, name string) (labels map[string]string) {
	t.Helper()
	out, err := p.Kubectl(t.Context(), nil, "get", "node", name, "-o", "jsonpath={.metadata.labels}")
	if err == nil {
		err = json.Unmarshal([]byte(out), &labels)
	}
	if err != nil {
		t.Fatal(err)
	}
	return labels
}

// droverTokens returns the descriptions of the tokens that drover made.
func droverTokens(t *testing.T, p *controlplane.Cluster) string {
	t.Helper()
	out, err := p.Kubectl(t.Context(), nil, "get", "secrets", "-n", "kube-system", "-o", "jsonpath={.items[*].data.description}")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// KubeletMaySet agrees with the labels that the API server allows a kubelet to set.
func testLabels(t *testing.T, p *controlplane.Cluster, kubeconfig, name string) {
	for _, label := range []string{
		"label1", "example.org/rack", "topology.kubernetes.io/zone", "node.kubernetes.io/x", "sub.node.kubernetes.io/x", "kubelet.kubernetes.io/x",
		"node-role.kubernetes.io/worker", "kubernetes.io/role", "node-restriction.kubernetes.io/x", "sub.node-restriction.kubernetes.io/x", "k8s.io/x", "x-node.kubernetes.io/x",
	} {
		_, err := p.KubectlAs(t.Context(), kubeconfig, nil, "label", "node", name, label+"=x", "--dry-run=server")
		if may := node.KubeletMaySet(label); may != (err == nil) {
			t.Errorf("KubeletMaySet(%q) is %v, the API server says %v", label, may, err)
		}
	}
}

// A token that was never used is refused after its time, and removed.
func testExpiry(t *testing.T, p *controlplane.Cluster) {
	c, _ := clusters(t, 5*time.Second, p)
	token, _ := join(t, c, &resolve.Plan{Node: "late", Cluster: p.Name}, "")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.WriteKubeconfig(path, token); err != nil {
		t.Fatal(err)
	}
	if out, err := p.KubectlAs(t.Context(), path, nil, "auth", "whoami"); err != nil || !strings.Contains(out, "system:bootstrappers:drover:node") {
		t.Fatalf("the token is of no use: %q, %v", out, err)
	}
	fixture.Retry(t, "token refused and removed", func() error {
		if _, err := p.KubectlAs(t.Context(), path, nil, "auth", "whoami"); err == nil {
			return errors.New("the token is still valid")
		}
		if _, err := p.Kubectl(t.Context(), nil, "get", "secret", "-n", "kube-system", "bootstrap-token-"+token[:6]); err == nil || !strings.Contains(err.Error(), "NotFound") {
			return fmt.Errorf("its Secret is still there (%v)", err)
		}
		return nil
	})
}

// All nodes of a room join in the same second. A node with a retry time tries again.
func testMany(t *testing.T, p *controlplane.Cluster) {
	c, _ := clusters(t, 0, p)
	tokens := joinRoom(t, p, c)
	t.Run("certificates", func(t *testing.T) {
		for i := range 20 {
			t.Run(fmt.Sprintf("n%d", i), func(t *testing.T) {
				t.Parallel()
				bootstrap(t, p, fmt.Sprintf("n%d", i), tokens[i])
			})
		}
	})
}

// joinRoom joins 200 nodes at the same time, and returns their tokens.
func joinRoom(t *testing.T, p *controlplane.Cluster, c *kube.Clusters) []string {
	t.Helper()
	const nodes = 200
	took, tokens := make([]time.Duration, nodes), make([]string, nodes)
	var later atomic.Int32
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			start := time.Now()
			plan := &resolve.Plan{Node: fmt.Sprintf("n%d", i), Cluster: p.Name}
			got, err := c.Join(t.Context(), plan, netip.MustParseAddr("10.28.36.173"), "")
			for time.Since(start) < 10*time.Minute {
				busy, ok := errors.AsType[*cluster.Error](err)
				if !ok {
					break
				}
				later.Add(1)
				time.Sleep(busy.RetryAfter())
				got, err = c.Join(t.Context(), plan, netip.MustParseAddr("10.28.36.173"), "")
			}
			if err != nil {
				t.Error(err)
			}
			took[i], tokens[i] = time.Since(start), tokenIn(got.Kubeadm)
		})
	}
	wg.Wait()
	slices.Sort(took)
	t.Logf("%d joins at once: median %v, p99 %v, %d told to ask later", nodes, took[nodes/2], took[nodes*99/100], later.Load())
	return tokens
}
