package controlplane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/approve"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	clientSigner  = "kubernetes.io/kube-apiserver-client-kubelet"
	servingSigner = "kubernetes.io/kubelet-serving"
)

// newRequest returns a new key and a request for a node of that name.
func newRequest(t *testing.T, name string, ips ...net.IP) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}, IPAddresses: ips,
	}
	if len(ips) > 0 {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), key
}

// manifest returns a CertificateSigningRequest.
func manifest(signer, usage string, request []byte) string {
	return fmt.Sprintf(`{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"generateName": "node-csr-"},
		"spec": {"signerName": %q, "usages": ["digital signature", %q], "request": %q}}`, signer, usage, base64.StdEncoding.EncodeToString(request))
}

// requestManifest returns a CertificateSigningRequest for a node of that name, with a key
// that is then lost.
func requestManifest(t *testing.T, signer, usage, name string) string {
	t.Helper()
	request, _ := newRequest(t, name)
	return manifest(signer, usage, request)
}

// ask makes a request for the client certificate of a node, as its kubelet does,
// and returns its name as kubectl has it.
func ask(t *testing.T, p *controlplane.Cluster, kubeconfig, name string) (string, *ecdsa.PrivateKey) {
	t.Helper()
	request, key := newRequest(t, name)
	return create(t, p, kubeconfig, manifest(clientSigner, "client auth", request)), key
}

func create(t *testing.T, p *controlplane.Cluster, kubeconfig, manifest string) string {
	t.Helper()
	object, err := p.KubectlAs(t.Context(), kubeconfig, strings.NewReader(manifest), "create", "-f", "-", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(object)
}

// certificate waits until a request is signed.
func certificate(t *testing.T, p *controlplane.Cluster, kubeconfig, object string) (cert string) {
	t.Helper()
	fixture.Retry(t, "certificate issued", func() error {
		var err error
		cert, err = p.KubectlAs(t.Context(), kubeconfig, nil, "get", object, "-o", "jsonpath={.status.certificate}")
		if err == nil && cert == "" {
			err = errors.New("pending")
		}
		return err
	})
	return cert
}

// denied waits until a request is denied with that reason, and checks that it is not
// signed.
func denied(t *testing.T, p *controlplane.Cluster, object, reason string) {
	t.Helper()
	fixture.Retry(t, "request denied: "+reason, func() error {
		out, err := p.Kubectl(t.Context(), nil, "get", object, "-o", "jsonpath={.status.conditions[*].type}: {.status.conditions[*].message} [{.status.certificate}]")
		if err == nil && (!strings.HasPrefix(out, "Denied: ") || !strings.Contains(out, reason) || !strings.HasSuffix(out, "[]")) {
			err = fmt.Errorf("it is %q", out)
		}
		return err
	})
}

// withToken writes a kubeconfig with a token.
func withToken(t *testing.T, p *controlplane.Cluster, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bootstrap.conf")
	if err := p.WriteKubeconfig(path, token); err != nil {
		t.Fatal(err)
	}
	return path
}

// testApprover uses a stolen token. It is valid for one certificate of the node that it
// was minted for, until that node is Ready.
func testApprover(t *testing.T, p *controlplane.Cluster) {
	before, _ := clusters(t, 0, p)
	plan := &resolve.Plan{Node: "one", Cluster: p.Name}
	token, _ := join(t, before, plan, "boot-1")
	stolen := withToken(t, p, token)

	other, _ := ask(t, p, stolen, "another")
	denied(t, p, other, "its token was not minted for a node of this name")
	kubelet := bootstrap(t, p, "one", token)
	again, _ := ask(t, p, stolen, "one")
	denied(t, p, again, "its token was used for another certificate request before")

	// drover restarts.
	before.Close()
	c, ready := clusters(t, 0, p)
	again, _ = ask(t, p, stolen, "one")
	denied(t, p, again, "its token was used for another certificate request before")
	second, _ := join(t, c, plan, "boot-1")
	third, _ := join(t, c, plan, "boot-1") // its answer was lost
	gone := func(token string) {
		t.Helper()
		path := withToken(t, p, token)
		fixture.Retry(t, "token gone", func() error {
			out, err := p.KubectlAs(t.Context(), path, nil, "auth", "whoami")
			if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
				return fmt.Errorf("it is still good: %s, %w", out, err)
			}
			return nil
		})
	}
	gone(second)
	register(t, p, kubelet, "one")
	beat(t, p, kubelet, "one", "boot-1", "True")
	<-ready
	gone(third)
	t.Run("renewal", func(t *testing.T) {
		object, _ := ask(t, p, kubelet, "one")
		certificate(t, p, kubelet, object)
	})
	t.Run("serving", func(t *testing.T) { testServing(t, p, kubelet) })
	t.Run("stolen credentials", func(t *testing.T) { testStolenApproval(t, p) })
}

// testServing asks for serving certificates as the node "one".
func testServing(t *testing.T, p *controlplane.Cluster, kubelet string) {
	c := &kube.Clusters{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), StartLoops: true, Key: droverKey,
		Machines: planOf(func(node string) *resolve.Plan {
			if node != "one" {
				return nil
			}
			return &resolve.Plan{Node: "one", Cluster: p.Name, Address: netip.MustParseAddr("10.28.36.173")}
		}),
	}
	left := make(chan approve.Request, 100)
	c.OnRequest = func(r approve.Request) {
		if r.Result == "left" && r.Serving {
			left <- r
		}
	}
	c.Set([]pools.Cluster{{Name: p.Name, Kubeconfig: p.Client, Serving: true}})
	defer c.Close()
	request, _ := newRequest(t, "one", net.IPv4(10, 28, 36, 173))
	certificate(t, p, kubelet, create(t, p, kubelet, manifest(servingSigner, "server auth", request)))
	request, _ = newRequest(t, "one", net.IPv4(10, 28, 36, 173), net.IPv4(10, 96, 0, 1))
	object := create(t, p, kubelet, manifest(servingSigner, "server auth", request))
	select {
	case r := <-left:
		if !strings.HasSuffix(object, "/"+r.Name) || !strings.Contains(r.Why, "10.96.0.1") {
			t.Errorf("told of %+v, not of %s", r, object)
		}
	case <-time.After(time.Minute):
		t.Error("nobody is told of a request for another's address")
	}
	if out, err := p.Kubectl(t.Context(), nil, "get", object, "-o", "jsonpath={.status}"); err != nil || out != "{}" {
		t.Errorf("a request for another's address: %q, %v", out, err)
	}
}

// testStolenApproval approves, with drover's own credentials, what is not
// drover's to approve.
func testStolenApproval(t *testing.T, p *controlplane.Cluster) {
	const policy = "ValidatingAdmissionPolicy 'drover-only-its-requests'"
	kubeadms, err := p.Kubectl(t.Context(), nil, "get", "secrets", "-n", "kube-system", "--field-selector=type=bootstrap.kubernetes.io/token",
		"-o", `jsonpath={range .items[*]}{.data.auth-extra-groups}={.data.token-id}.{.data.token-secret}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	var token []string
	for line := range strings.Lines(kubeadms) {
		groups, rest, _ := strings.Cut(strings.TrimSpace(line), "=")
		if b, _ := base64.StdEncoding.DecodeString(groups + strings.Repeat("=", -len(groups)&3)); strings.Contains(string(b), "kubeadm") {
			token = nil
			for part := range strings.SplitSeq(strings.TrimLeft(rest, "="), ".") {
				b, _ := base64.StdEncoding.DecodeString(part)
				token = append(token, string(b))
			}
		}
	}
	if len(token) != 2 {
		t.Fatal("the plane has no token of kubeadm's")
	}
	byToken := withToken(t, p, strings.Join(token, "."))
	tests := []struct {
		name, as, signer, usage string
		want                    string
	}{
		{"an administrator's request for a node", p.Admin, clientSigner, "client auth", policy},
		{"a request by a token of kubeadm's, for what it does not approve", byToken, servingSigner, "server auth", policy},
		{"an administrator's request for a server", p.Admin, servingSigner, "server auth", policy},
		{"a user", p.Admin, "kubernetes.io/kube-apiserver-client", "client auth", "user not permitted to approve requests with signerName"},
		{"a signer of somebody's", p.Admin, "example.org/x", "client auth", "user not permitted to approve requests with signerName"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := create(t, p, tt.as, requestManifest(t, tt.signer, tt.usage, "victim"))
			if out, err := approveAs(t, p, p.Client, object); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("approved, or not refused by %s: %s, %v", tt.want, out, err)
			}
		})
	}
}

// approveAs approves a request as the user of a kubeconfig.
func approveAs(t *testing.T, p *controlplane.Cluster, kubeconfig, object string) (string, error) {
	t.Helper()
	text, err := p.Kubectl(t.Context(), nil, "get", object, "-o", "json")
	var csr map[string]any
	if err == nil {
		err = json.Unmarshal([]byte(text), &csr)
	}
	if err != nil {
		t.Fatal(err)
	}
	csr["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Approved", "status": "True", "reason": "x", "message": "x"}}}
	body, err := json.Marshal(csr)
	if err != nil {
		t.Fatal(err)
	}
	_, name, _ := strings.Cut(object, "/")
	return p.KubectlAs(t.Context(), kubeconfig, strings.NewReader(string(body)), "replace", "--raw", "/apis/certificates.k8s.io/v1/certificatesigningrequests/"+name+"/approval", "-f", "-")
}

// testShared joins nodes by one shared token: nodes of the farm without a Node.
func testShared(t *testing.T, p *controlplane.Cluster) {
	c := &kube.Clusters{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), StartLoops: true,
		Machines: planOf(func(node string) *resolve.Plan {
			if !strings.HasPrefix(node, "old") {
				return nil
			}
			return &resolve.Plan{Node: node, Cluster: p.Name}
		}),
	}
	c.Set([]pools.Cluster{{Name: p.Name, Kubeconfig: p.Client, Token: pools.TokenPolicy{Mode: pools.Shared, TTL: pools.Duration(time.Hour)}}})
	defer c.Close()
	shared, err := c.SharedToken(t.Context(), p.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"old1", "old2"} {
		bootstrap(t, p, node, shared.Token)
	}
	stolen := withToken(t, p, shared.Token)
	object, _ := ask(t, p, stolen, "control-plane")
	denied(t, p, object, "no node of this name is to join this cluster")
	if token, _ := join(t, c, &resolve.Plan{Node: "old3", Cluster: p.Name}, ""); token != shared.Token {
		t.Error("a node that asks gets another token than the shared one")
	}
}
