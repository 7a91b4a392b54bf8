package kube_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/token"
	"drover/pools"
	"drover/pools/resolve"
)

// joinConfiguration has the fields of a JoinConfiguration that drover may set.
type joinConfiguration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Discovery  struct {
		BootstrapToken struct {
			Token             string   `json:"token"`
			APIServerEndpoint string   `json:"apiServerEndpoint"`
			CACertHashes      []string `json:"caCertHashes"`
		} `json:"bootstrapToken"`
		TLSBootstrapToken string `json:"tlsBootstrapToken"`
	} `json:"discovery"`
	NodeRegistration struct {
		Name             string         `json:"name"`
		CRISocket        string         `json:"criSocket"`
		Taints           []corev1.Taint `json:"taints"`
		KubeletExtraArgs []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"kubeletExtraArgs"`
	} `json:"nodeRegistration"`
	Timeouts map[string]string `json:"timeouts"`
}

func (j joinConfiguration) arg(name string) string {
	for _, a := range j.NodeRegistration.KubeletExtraArgs {
		if a.Name == name {
			return a.Value
		}
	}
	return "(none)"
}

// decode parses a JoinConfiguration as strictly as kubeadm.
func decode(t testing.TB, text string) (j joinConfiguration) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &j); err != nil {
		t.Fatalf("JoinConfiguration: %v\n%s", err, text)
	}
	return j
}

// newClusters returns a Clusters with the tenant "tenant-a", and its log.
func newClusters(t testing.TB, kubeconfig string, edit ...func(*pools.Cluster)) (*kube.Clusters, *fixture.Log) {
	return newWatching(t, kubeconfig, 10*time.Millisecond, edit...)
}

// newWatching is newClusters with another DeadAfter.
func newWatching(t testing.TB, kubeconfig string, watch time.Duration, edit ...func(*pools.Cluster)) (*kube.Clusters, *fixture.Log) {
	log := new(fixture.Log)
	c := &kube.Clusters{DeadAfter: watch, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	conf := pools.Cluster{Name: "tenant-a", Kubeconfig: kubeconfig}
	for _, e := range edit {
		e(&conf)
	}
	c.Set([]pools.Cluster{conf})
	t.Cleanup(c.Close)
	return c, log
}

func plan(edit ...func(*resolve.Plan)) *resolve.Plan {
	p := &resolve.Plan{Node: "m1c29", Cluster: "tenant-a"}
	for _, e := range edit {
		e(p)
	}
	return p
}

func addr() netip.Addr  { return netip.MustParseAddr("10.28.36.173") }
func addr6() netip.Addr { return netip.MustParseAddr("2001:db8::29") }

func TestJoinConfiguration(t *testing.T) {
	tests := []struct {
		name string
		addr string
		set  resolve.Settings
	}{
		{"plain", "10.28.36.173", resolve.Settings{}},
		{"ipv6", "2001:db8::29", resolve.Settings{}},
		{"tags", "10.28.36.173", resolve.Settings{
			Labels: map[string]string{
				"label1": "value1", "example.org/rack": "r7", "node.kubernetes.io/pool": "foo",
				"node-role.kubernetes.io/worker": "", "x.node-restriction.kubernetes.io/tier": "gold",
			},
			Taints:      []pools.Taint{{Key: "foo", Value: "bar", Effect: "NoSchedule"}, {Key: "bare", Effect: "NoExecute"}},
			KubeletArgs: map[string]string{"max-pods": "250", "v": "4"},
		}},
		{"taints", "10.28.36.173", resolve.Settings{Taints: []pools.Taint{
			{Key: "a", Value: "earlier", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"}, {Key: "a", Value: "later", Effect: "NoSchedule"},
		}}},
		{"node-ip", "10.28.36.173", resolve.Settings{KubeletArgs: map[string]string{"node-ip": "10.99.0.1"}}},
		// YAML reads these as something else than a string unless they are quoted.
		{"yaml", "10.28.36.173", resolve.Settings{
			Labels: map[string]string{"a": "yes", "b": "null", "c": "1e3", "d": "0x1F", "e": "2026-11-20", "f": ""},
			Taints: []pools.Taint{{Key: "true", Value: "off", Effect: "NoSchedule"}, {Key: "1", Value: "012", Effect: "NoSchedule"}},
			KubeletArgs: map[string]string{
				"a": "!!int", "b": "*alias", "c": "&anchor", "d": "{x:y}", "e": "[", "f": "#", "g": "%x", "h": "@", "i": "|", "j": ">", "k": "-", "l": "?", "m": ":", "n": "", "o": "---", "p": "~", "q": "1_000", "r": "12:30:45",
			},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newAPIServer(t)
			c, _ := newClusters(t, s.kubeconfig(), func(c *pools.Cluster) { c.Endpoint = "tenant-a.example.org:6443" })
			got, err := c.Join(t.Context(), plan(func(p *resolve.Plan) { p.Settings = tt.set }), netip.MustParseAddr(tt.addr), "")
			if err != nil {
				t.Fatal(err)
			}
			j := decode(t, got.Kubeadm)
			if j.NodeRegistration.Taints == nil {
				t.Error("taints are absent: kubeadm would choose some")
			}
			for name, value := range tt.set.KubeletArgs {
				if j.arg(name) != value {
					t.Errorf("kubelet argument %q is %q, want %q", name, j.arg(name), value)
				}
			}
			text := strings.ReplaceAll(got.Kubeadm, j.Discovery.BootstrapToken.Token, "abcdef.(secret)")
			text = strings.ReplaceAll(text, j.Discovery.BootstrapToken.CACertHashes[0], "sha256:(hash)")
			fixture.Golden(t, "testdata/join-"+tt.name+".yaml", text)
		})
	}
}

func TestJoinTakesEndpointFromClusterInfo(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	got, err := c.Join(t.Context(), plan(), addr(), "")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(s.URL, "https://")
	if got := decode(t, got.Kubeadm).Discovery.BootstrapToken.APIServerEndpoint; got != want {
		t.Errorf("endpoint %q, want %q", got, want)
	}
}

func TestTokenSecret(t *testing.T) {
	s := newAPIServer(t)
	now := time.Date(2026, 11, 20, 21, 0, 0, 0, time.FixedZone("CET", 3600))
	c, log := newClusters(t, s.kubeconfig(), func(c *pools.Cluster) { c.Token.TTL = pools.Duration(3 * time.Minute) })
	c.Now, c.Key = func() time.Time { return now }, []byte("a key of the server's own")
	got, err := c.Join(t.Context(), plan(), addr(), "")
	if err != nil {
		t.Fatal(err)
	}
	tok := decode(t, got.Kubeadm).Discovery.BootstrapToken.Token
	id, secret, _ := strings.Cut(tok, ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.secrets) != 1 {
		t.Fatalf("%d Secrets made, want 1", len(s.secrets))
	}
	have := s.secrets["bootstrap-token-"+id]
	if have.Type != "bootstrap.kubernetes.io/token" || have.Namespace != "kube-system" {
		t.Errorf("Secret %q of type %q in %q, want a bootstrap token in kube-system", have.Name, have.Type, have.Namespace)
	}
	want := map[string]string{
		"token-id": id, "token-secret": secret, "expiration": "2026-11-20T20:03:00Z", "description": "drover: node m1c29",
		"auth-extra-groups":       token.Groups(c.Key, id, "m1c29", now.Add(3*time.Minute)),
		"usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true",
	}
	if !reflect.DeepEqual(have.StringData, want) {
		t.Errorf("Secret holds %v, want %v", have.StringData, want)
	}
	if strings.Contains(log.String(), secret) || !strings.Contains(log.String(), id) {
		t.Errorf("the log should have the id %q and not the secret: %s", id, log)
	}
}

// A node repeats its request after a lost answer: it gets another token, and the first
// one is deleted.
func TestJoinTwice(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	var tokens []string
	for range 2 {
		got, err := c.Join(t.Context(), plan(), addr(), "")
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, decode(t, got.Kubeadm).Discovery.BootstrapToken.Token)
	}
	if tokens[0] == tokens[1] {
		t.Fatalf("the same token twice: %s", tokens[0])
	}
	id, _, _ := strings.Cut(tokens[0], ".")
	fixture.Eventually(t, "first token deleted", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.deleted) == 1 && s.deleted[0] == "bootstrap-token-"+id
	})
	if got := c.Followed(); got != 1 {
		t.Errorf("%d nodes followed, want 1", got)
	}
}

func TestJoinErrors(t *testing.T) {
	notUnderstood := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hotel wifi</html>")) }
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	tests := []struct {
		name   string
		broken func(s *apiServer)
		want   string
		retry  time.Duration
	}{
		{"may not create", func(s *apiServer) { s.set("POST secrets", fail(403, "Forbidden", "secrets is forbidden")) },
			`cluster "tenant-a": mint a join token: the kubeconfig's user lacks the right, apply deploy/rbac.yaml`, 30 * time.Second},
		{"may not read cluster-info", func(s *apiServer) { s.set("GET configmaps", fail(403, "Forbidden", "no")) },
			`read cluster-info: the kubeconfig's user lacks the right`, 30 * time.Second},
		{"credentials expired", func(s *apiServer) { s.set("GET nodes", fail(401, "Unauthorized", "Unauthorized")) },
			`read the Node: the cluster does not know the kubeconfig's credentials`, 30 * time.Second},
		{"no cluster-info", func(s *apiServer) { s.set("GET configmaps", fail(404, "NotFound", "configmaps not found")) },
			`"kubeadm init phase bootstrap-token" makes it`, 30 * time.Second},
		{"not signed", func(s *apiServer) { s.unsigned = true }, `the bootstrapsigner does not run`, 30 * time.Second},
		{"busy", func(s *apiServer) { s.set("POST secrets", fail(500, "InternalError", "etcd has no leader")) },
			`the API server is busy or not well: etcd has no leader`, 5 * time.Second},
		{"admission", func(s *apiServer) { s.set("POST secrets", fail(422, "Invalid", "denied request")) },
			`the cluster's admission refuses it: denied request`, 30 * time.Second},
		{"ids all taken", func(s *apiServer) { s.set("POST secrets", fail(409, "AlreadyExists", "exists")) },
			`three random ids are all taken`, 5 * time.Second},
		{"no API server", func(s *apiServer) { s.set("GET nodes", notUnderstood) }, `read the Node`, 5 * time.Second},
		{"does not answer", func(s *apiServer) { s.set("POST secrets", hang) }, `mint a join token: the API server does not answer in time`, 5 * time.Second},
		{"gone", func(s *apiServer) { s.Close() }, `read the Node: the API server is unreachable`, 5 * time.Second},
		{"cluster-info empty", func(s *apiServer) { s.info = "" }, `it is broken: its kubeconfig names 0 clusters, want 1`, 30 * time.Second},
		{"cluster-info huge", func(s *apiServer) { s.info += strings.Repeat("#", 64<<10) }, `it is broken: its kubeconfig is larger than 65536 bytes`, 30 * time.Second},
		{"cluster-info without CA", func(s *apiServer) { s.info = kubeconfig(s.t, "", s.URL, nil, "") }, `it is broken: its kubeconfig has no CA certificate`, 30 * time.Second},
		{"cluster-info with a bad CA", func(s *apiServer) { s.info = kubeconfig(s.t, "", s.URL, []byte("x"), "") }, `it is broken`, 30 * time.Second},
		{"cluster-info without TLS", func(s *apiServer) { s.info = kubeconfig(s.t, "", "http://10.0.0.1", nil, "") }, `is not like https://host:port`, 30 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			c, log := newClusters(t, s.kubeconfig())
			tt.broken(s)
			got, err := c.Join(t.Context(), plan(), addr(), "") // two of them take its time limits
			if err == nil {
				t.Fatalf("joined, want an error with %q", tt.want)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want it to say %q", err, tt.want)
			}
			if got.Kubeadm != "" {
				t.Errorf("an error and a JoinConfiguration:\n%s", got.Kubeadm)
			}
			retry, ok := err.(interface{ RetryAfter() time.Duration })
			if !ok || retry.RetryAfter() != tt.retry {
				t.Errorf("error %q does not say to retry after %v", err, tt.retry)
			}
			c.Close()
			for _, secret := range s.minted {
				if strings.Contains(err.Error()+log.String(), secret) {
					t.Errorf("the secret %q shows: %v\n%s", secret, err, log)
				}
			}
		})
	}
}

// A token that was minted, but that no node got, is deleted.
func TestFailedJoinDeletesItsToken(t *testing.T) {
	s := newAPIServer(t)
	s.unsigned = true
	c, _ := newClusters(t, s.kubeconfig())
	ctx, cancel := context.WithCancel(t.Context())
	s.set("GET configmaps", func(w http.ResponseWriter, _ *http.Request) {
		cancel() // the node disconnects
		s.send(w, 200, s.clusterInfo())
	})
	if _, err := c.Join(ctx, plan(), addr(), ""); err == nil {
		t.Fatal("joined without a signature")
	}
	fixture.Eventually(t, "token deleted", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.deleted) == 1
	})
}

// An admission webhook of the tenant may repeat the whole request.
func TestJoinErrorHidesSecret(t *testing.T) {
	s := newAPIServer(t)
	var sent string
	s.set("POST secrets", func(w http.ResponseWriter, r *http.Request) {
		secret := decodeSecret(t, r)
		sent = secret.StringData["token-secret"]
		fail(403, "Forbidden", fmt.Sprintf("denied: %v", secret.StringData))(w, r)
	})
	c, log := newClusters(t, s.kubeconfig())
	_, err := c.Join(t.Context(), plan(), addr(), "")
	if err == nil || sent == "" {
		t.Fatalf("error %v, token %q: want both", err, sent)
	}
	if strings.Contains(err.Error()+log.String(), sent) {
		t.Errorf("the secret %q shows: %v", sent, err)
	}
}

func TestJoinRefuses(t *testing.T) {
	tests := []struct {
		name string
		edit func(*resolve.Plan)
		addr netip.Addr
		want string
	}{
		{"no cluster", func(p *resolve.Plan) { p.Cluster = "" }, addr(), `node "m1c29": its pool names no cluster`},
		{"unknown cluster", func(p *resolve.Plan) { p.Cluster = "b" }, addr(), `no cluster "b" in the config`},
		{"node name", func(p *resolve.Plan) { p.Node = "Node_1" }, addr(), "its name cannot be that of a Node"},
		{"node name with more lines", func(p *resolve.Plan) { p.Node = "a\n  b: c" }, addr(), "its name cannot be that of a Node"},
		{"no address", func(*resolve.Plan) {}, netip.Addr{}, `cannot be that of a Node`},
		{"address with zone", func(*resolve.Plan) {}, netip.MustParseAddr("fe80::1%eth0"), `cannot be that of a Node`},
		{"label", func(p *resolve.Plan) { p.Labels = map[string]string{"a b": "c"} }, addr(), `label "a b"`},
		{"label value", func(p *resolve.Plan) { p.Labels = map[string]string{"a": "x,b=y"} }, addr(), `label "a": value "x,b=y"`},
		{"taint effect", func(p *resolve.Plan) { p.Taints = []pools.Taint{{Key: "a", Effect: "Never"}} }, addr(), `taint "a": effect "Never" is not`},
		{"taint key", func(p *resolve.Plan) { p.Taints = []pools.Taint{{Key: "", Effect: "NoExecute"}} }, addr(), `taint ""`},
		{"identity", func(p *resolve.Plan) { p.KubeletArgs = map[string]string{"hostname-override": "other"} }, addr(), `kubelet argument hostname-override is set by the join itself`},
		{"flag with dashes", func(p *resolve.Plan) { p.KubeletArgs = map[string]string{"--v": "4"} }, addr(), `kubelet argument "--v" starts with dashes`},
		{"two flags in one", func(p *resolve.Plan) { p.KubeletArgs = map[string]string{"v": "4 --kubeconfig=/tmp/x"} }, addr(), `has white space`},
		{"shell", func(p *resolve.Plan) { p.KubeletArgs = map[string]string{"v": `4"`} }, addr(), `has white space, quotes`},
		{"labels twice", func(p *resolve.Plan) { p.KubeletArgs = map[string]string{"node-labels": "a=b"} }, addr(), `kubelet argument node-labels is made from labels`},
		{"taints twice", func(p *resolve.Plan) { p.KubeletArgs = map[string]string{"register-with-taints": "a:NoExecute"} }, addr(), `kubelet argument register-with-taints is made from`},
	}
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Join(t.Context(), plan(tt.edit), tt.addr, "")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want it to say %q", err, tt.want)
			}
		})
	}
	if got := s.count("POST secrets"); got != 0 {
		t.Errorf("%d tokens minted for nodes that were refused", got)
	}
}
