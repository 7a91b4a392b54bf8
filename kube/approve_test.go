package kube_test

import (
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/approve"
	"drover/kube/token"
	"drover/pools"
	"drover/pools/resolve"
)

// reports collects the calls of OnRequest.
type reports struct {
	mu  sync.Mutex
	all []approve.Request
}

func (r *reports) add(req approve.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, req)
}

// of returns the results for a request, in order.
func (r *reports) of(name string) (results []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, req := range r.all {
		if req.Name == name {
			results = append(results, req.Result)
		}
	}
	return results
}

// withLoops returns a Clusters that runs the loops of the tenant "tenant-a".
func withLoops(t *testing.T, s *apiServer, conf pools.Cluster, edit ...func(*kube.Clusters)) (*kube.Clusters, *reports, *fixture.Log) {
	log, requests := new(fixture.Log), new(reports)
	c := &kube.Clusters{
		DeadAfter: 10 * time.Millisecond, Key: sealKey, StartLoops: true, OnRequest: requests.add,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, e := range edit {
		e(c)
	}
	conf.Name, conf.Kubeconfig = "tenant-a", s.kubeconfig()
	c.Set([]pools.Cluster{conf})
	t.Cleanup(c.Close)
	return c, requests, log
}

func decided(t *testing.T, s *apiServer, name, want string) {
	t.Helper()
	fixture.Eventually(t, name+" decided", func() bool { return s.outcome(name) != "" })
	if got := s.outcome(name); !strings.HasPrefix(got, want) {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// A token gets one certificate for one node. Any other request by it is denied, even
// after a restart of the server.
func TestApprover(t *testing.T) {
	s := newAPIServer(t)
	s.ask(request(t, "waits", "aaaaaa", groupsOf("aaaaaa", "m0"), "m0")) // from before the server was started
	c, requests, log := withLoops(t, s, pools.Cluster{})
	decided(t, s, "waits", "Approved: drover minted token aaaaaa for node m0")

	got, err := c.Join(t.Context(), plan(), addr(), "")
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(decode(t, got.Kubeadm).Discovery.BootstrapToken.Token, ".")
	s.mu.Lock()
	groups := s.secrets["bootstrap-token-"+id].StringData["auth-extra-groups"]
	s.mu.Unlock()
	s.ask(request(t, "other-name", id, groups, "m1c30"))
	decided(t, s, "other-name", "Denied: drover: its token was not minted for a node of this name")
	s.ask(request(t, "first", id, groups, "m1c29"))
	decided(t, s, "first", "Approved: drover minted token "+id+" for node m1c29")
	s.ask(request(t, "second", id, groups, "m1c29"))
	decided(t, s, "second", "Denied: drover: its token was used for another certificate request before")
	s.ask(request(t, "kubeadm", "bbbbbb", "system:bootstrappers:kubeadm:default-node-token", "m1c29"))
	s.ask(request(t, "foreign", "cccccc", token.Groups([]byte("of another drover"), "cccccc", "m1c29", time.Now().Add(time.Minute)), "m1c29"))
	fixture.Eventually(t, "the others to be reported", func() bool { return len(requests.of("kubeadm")) > 0 && len(requests.of("foreign")) > 0 })

	c.Close()
	_, _, later := withLoops(t, s, pools.Cluster{})
	s.ask(request(t, "third", id, groups, "m1c29"))
	decided(t, s, "third", "Denied: drover: its token was used for another certificate request before")
	for name, want := range map[string]string{"first": "approved", "second": "denied", "other-name": "denied", "kubeadm": "foreign", "foreign": "left"} {
		if got := requests.of(name); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: reported %q, want %s once", name, got, want)
		}
	}
	for _, name := range []string{"kubeadm", "foreign"} {
		if got := s.outcome(name); got != "" {
			t.Errorf("%s was decided on: %s", name, got)
		}
	}
	if want := `level=WARN msg="certificate request not approved" cluster=tenant-a request=second`; !strings.Contains(log.String(), want) {
		t.Errorf("log: %s\nwant %s", log, want)
	}
	if strings.Contains(later.String(), "request=first") {
		t.Errorf("what was approved before the restart is reported again: %s", later)
	}
}

// C2: a request that is larger than any kubelet's is not looked at, however many a hostile
// API server sends, and the others are decided on.
func TestApproverLeavesHugeRequests(t *testing.T) {
	s := newAPIServer(t)
	huge := request(t, "huge", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1")
	huge.Annotations = map[string]string{"a": strings.Repeat("x", 20_000)}
	s.ask(huge)
	longUID := request(t, "uid", "bbbbbb", groupsOf("bbbbbb", "m1"), "m1")
	longUID.UID = types.UID(strings.Repeat("x", 10_000))
	s.ask(longUID)
	s.ask(request(t, "good", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1"))
	_, requests, _ := withLoops(t, s, pools.Cluster{})
	decided(t, s, "good", "Approved")
	s.ask(longUID)
	s.ask(request(t, "later", "cccccc", groupsOf("cccccc", "m1"), "m1"))
	decided(t, s, "later", "Approved")
	for _, name := range []string{"huge", "uid"} {
		if got := s.outcome(name); got != "" || len(requests.of(name)) > 0 {
			t.Errorf("%s: %q, reported %q", name, got, requests.of(name))
		}
	}
}

// Two requests by one token at the same time: one is approved.
func TestApproverRace(t *testing.T) {
	s := newAPIServer(t)
	groups := groupsOf("aaaaaa", "m1")
	names := []string{"r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"}
	for _, name := range names {
		s.ask(request(t, name, "aaaaaa", groups, "m1"))
	}
	withLoops(t, s, pools.Cluster{})
	n := 0
	for _, name := range names {
		fixture.Eventually(t, name+" decided", func() bool { return s.outcome(name) != "" })
		if strings.HasPrefix(s.outcome(name), "Approved") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of %d requests by one token are approved", n, len(names))
	}
}

// A failed decision is tried again, and changes by other clients are kept.
func TestApproverTriesAgain(t *testing.T) {
	s := newAPIServer(t)
	s.set("PUT certificatesigningrequests", fail(500, "InternalError", "no leader"))
	_, requests, _ := withLoops(t, s, pools.Cluster{})
	s.ask(request(t, "r", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1"))
	fixture.Eventually(t, "the report of the error", func() bool { return slices.Contains(requests.of("r"), "error") })
	s.set("PUT certificatesigningrequests", nil)
	decided(t, s, "r", "Approved")

	// Another client adds a label before the decision.
	first := true // guarded by s.mu
	s.set("PUT certificatesigningrequests", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if first && strings.Contains(r.URL.Path, "/q/") {
			first = false
			s.requested[len(s.requested)-1].ResourceVersion += "."
		}
		s.mu.Unlock()
		s.putRequest(w, r, strings.Split(r.URL.Path, "/")[5])
	})
	s.ask(request(t, "q", "bbbbbb", groupsOf("bbbbbb", "m2"), "m2"))
	decided(t, s, "q", "Approved")
}

// drover may not list certificate requests, so joins would hang: the cluster is not
// ready. The error has the remedy.
func TestApproverMayNot(t *testing.T) {
	s := newAPIServer(t)
	s.set("GET certificatesigningrequests", fail(403, "Forbidden", "no"))
	c, _, log := withLoops(t, s, pools.Cluster{})
	fixture.Eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "certificate requests of nodes wait") })
	want := "list the certificate requests of nodes: the kubeconfig's user lacks the right, apply deploy/rbac.yaml"
	if err := c.Check(t.Context())["tenant-a"]; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// With the cluster's own approver, tokens have kubeadm's group and drover reads no
// request. Nor does it in a cluster that was removed from the config.
func TestApproverOff(t *testing.T) {
	s := newAPIServer(t)
	c, _, _ := withLoops(t, s, pools.Cluster{Approver: pools.ByCluster})
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	for _, secret := range s.secrets {
		if got := secret.StringData["auth-extra-groups"]; got != "system:bootstrappers:kubeadm:default-node-token" {
			t.Errorf("groups %q", got)
		}
	}
	s.mu.Unlock()
	conf := pools.Cluster{Name: "tenant-a", Kubeconfig: s.kubeconfig()}
	c.Set([]pools.Cluster{conf})
	fixture.Eventually(t, "watched", func() bool { return s.count("WATCH certificatesigningrequests") == 1 })
	c.Set(nil)
	s.ask(request(t, "late", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1"))
	c.Set([]pools.Cluster{conf})
	decided(t, s, "late", "Approved")
	fixture.Eventually(t, "watched anew", func() bool { return s.count("WATCH certificatesigningrequests") == 2 })
}

// nodes sets a farm of nodes of one cluster.
func nodes(names ...string) func(*kube.Clusters) {
	return func(c *kube.Clusters) {
		f := &farm{plans: map[string]*resolve.Plan{}}
		for _, node := range names {
			f.set(plan(func(p *resolve.Plan) { p.Node = node }))
		}
		if p := f.plans["elsewhere"]; p != nil {
			p.Cluster = "tenant-b"
		}
		c.Machines = f
		c.Addresses = func(pools.MAC) []netip.Addr { return []netip.Addr{addr(), addr6()} }
	}
}

// A shared token is for nodes of the farm that boot and are not Ready yet.
func TestApproverShared(t *testing.T) {
	s := newAPIServer(t)
	s.setNode("ready", "u1", "b1", corev1.ConditionTrue, beat(1))
	s.setNode("down", "u2", "b1", corev1.ConditionUnknown, beat(1))
	conf := pools.Cluster{Token: pools.TokenPolicy{Mode: pools.Shared, TTL: pools.Duration(time.Hour)}}
	c, _, _ := withLoops(t, s, conf, nodes("new", "down", "ready", "off", "elsewhere"))
	shared, err := c.SharedToken(t.Context(), "tenant-a")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Join(t.Context(), plan(func(p *resolve.Plan) { p.Node = "new" }), addr(), "")
	if err != nil {
		t.Fatal(err)
	}
	if tok := decode(t, got.Kubeadm).Discovery.BootstrapToken.Token; tok != shared.Token {
		t.Error("a node gets another token than the shared one")
	}
	id, _, _ := strings.Cut(shared.Token, ".")
	s.mu.Lock()
	secret := s.secrets["bootstrap-token-"+id]
	s.mu.Unlock()
	if got := secret.StringData["description"]; got != "drover: shared by all nodes" {
		t.Errorf("description %q", got)
	}
	for node, want := range map[string]string{
		"new": "Approved: drover minted token " + id + " for all nodes, and expects node new to boot", "down": "Approved",
		"ready": "Denied: drover: its Node is Ready", "off": "Denied: drover: no machine of this name boots",
		"elsewhere": "Denied: drover: no node of this name is to join", "unknown": "Denied: drover: no node of this name is to join",
	} {
		s.ask(request(t, node, id, secret.StringData["auth-extra-groups"], node))
		decided(t, s, node, want)
	}
	s.setNode("new", "u3", "b1", corev1.ConditionTrue, beat(1))
	c.Close()
	if s.count("POST secrets") != 1 || len(s.deleted) > 0 {
		t.Errorf("%d tokens made, %q deleted", s.count("POST secrets"), s.deleted)
	}
}

// memory is a token.Store in RAM.
type memory struct {
	mu   sync.Mutex
	data []byte
}

func (m *memory) LoadTokens() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data, nil
}

func (m *memory) SaveTokens(data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = slices.Clone(data)
	return nil
}

func TestSharedToken(t *testing.T) {
	s, m := newAPIServer(t), new(memory)
	conf := pools.Cluster{Token: pools.TokenPolicy{Mode: pools.Shared, TTL: pools.Duration(time.Hour)}, Endpoint: "a.example.org:6443"}
	var first pools.JoinToken
	for range 3 { // starts of the server
		c, _, log := withLoops(t, s, conf, func(c *kube.Clusters) { c.Tokens = m })
		got, err := c.SharedToken(t.Context(), "tenant-a")
		if err != nil {
			t.Fatal(err)
		}
		if first.Token == "" {
			first = got
		}
		if got.Token != first.Token || !got.Expires.Equal(first.Expires) || got.Endpoint != conf.Endpoint || len(got.CACertHashes) != 1 {
			t.Errorf("got %+v, first %+v", got, first)
		}
		c.Close()
		if _, secret, _ := strings.Cut(first.Token, "."); strings.Contains(log.String(), secret) {
			t.Errorf("the secret %q is in the log", secret)
		}
	}
	if got := s.count("POST secrets"); got != 1 {
		t.Errorf("%d tokens made", got)
	}
	if err := m.SaveTokens([]byte(`{"tenant-a": "s3cret"`)); err != nil {
		t.Fatal(err)
	}
	c, _, _ := withLoops(t, s, conf, func(c *kube.Clusters) { c.Tokens = m })
	if _, err := c.SharedToken(t.Context(), "tenant-a"); err == nil || !strings.Contains(err.Error(), "is not JSON of drover's") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("broken tokens: %v", err)
	}
	if _, err := c.SharedToken(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "no such cluster") {
		t.Errorf("unknown cluster: %v", err)
	}
	other, _ := newClusters(t, s.kubeconfig())
	if _, err := other.SharedToken(t.Context(), "tenant-a"); err == nil || !strings.Contains(err.Error(), "for one boot of one node each") {
		t.Errorf("per-boot tokens: %v", err)
	}
}

// Serving certificates, if the config enables them, are for the node's own addresses, of
// IPv4 and of IPv6.
func TestApproverServing(t *testing.T) {
	names := func(name, node string, ips ...net.IP) certificatesv1.CertificateSigningRequest {
		return serving(request(t, name, "", "", node, func(r *x509.CertificateRequest) {
			r.DNSNames, r.IPAddresses = []string{node}, ips
		}), node)
	}
	own, other := net.IPv4(10, 28, 36, 173), net.IPv4(10, 28, 0, 1)
	s := newAPIServer(t)
	s.setNode("m1", "u1", "b1", corev1.ConditionTrue, beat(1))
	s.setNode("theirs", "u2", "b1", corev1.ConditionTrue, beat(1))
	s.edit("theirs", func(n *corev1.Node) { n.Labels = nil })
	s.ask(names("off", "m1", own))
	c, requests, _ := withLoops(t, s, pools.Cluster{}, nodes("m1", "theirs", "m2"))
	fixture.Eventually(t, "watched", func() bool { return s.count("WATCH certificatesigningrequests") > 0 })
	c.Close()
	if got := s.outcome("off"); got != "" || len(requests.of("off")) > 0 {
		t.Errorf("serving certificates are disabled: got %q", got)
	}
	_, requests, _ = withLoops(t, s, pools.Cluster{Serving: true}, nodes("m1", "theirs", "m2"))
	s.ask(names("m2", "m2", own)) // before its Node exists
	own6 := net.IP(addr6().AsSlice())
	s.ask(names("ipv6", "m1", own6))
	s.ask(names("both", "m1", own, own6))
	s.ask(names("address", "m1", other))
	s.ask(names("address6", "m1", own, net.ParseIP("2001:db8::30")))
	s.ask(names("theirs", "theirs", own))
	s.ask(names("unknown", "m3", own))
	decided(t, s, "off", "Approved: drover gave node m1 this name and these addresses")
	for _, name := range []string{"m2", "ipv6", "both"} {
		decided(t, s, name, "Approved")
	}
	for _, name := range []string{"address", "address6", "theirs", "unknown"} {
		fixture.Eventually(t, "the report of "+name, func() bool { return slices.Equal(requests.of(name), []string{"left"}) })
		if got := s.outcome(name); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
