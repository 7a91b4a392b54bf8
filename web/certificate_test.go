package web_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover/pools"
)

// authority is a CA for the certificates of clients.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	c := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "people"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.cert, a.key = c.Leaf, c.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// issue signs a certificate; the first one is that of the authority.
func (a *authority) issue(c *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore = big.NewInt(1), time.Now().Add(-2*time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) client(name string, edit ...func(*x509.Certificate)) *tls.Certificate {
	a.t.Helper()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, e := range edit {
		e(c)
	}
	made := a.issue(c)
	return &made
}

// secure returns the TLS of a server that takes the certificates of an authority, and makes
// the transports of its clients; they have no certificate if it is nil.
func secure(people *authority) (conf *tls.Config, transport func(*tls.Certificate) *http.Transport) {
	certified := httptest.NewTLSServer(nil) // for its certificate, which is of 127.0.0.1
	certified.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(people.cert)
	conf = &tls.Config{Certificates: certified.TLS.Certificates, ClientCAs: trusted, ClientAuth: tls.VerifyClientCertIfGiven}
	return conf, func(cert *tls.Certificate) *http.Transport {
		t := certified.Client().Transport.(*http.Transport).Clone()
		if cert != nil {
			t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
		}
		return t
	}
}

// TestClientCertificates: a certificate of the authority has the role that the config gives to
// one of its names, and no other certificate has any.
func TestClientCertificates(t *testing.T) {
	people, others := newAuthority(t), newAuthority(t)
	conf, transport := secure(people)
	var grants atomic.Pointer[[]pools.Grant]
	grants.Store(&[]pools.Grant{
		{Name: "alice@example.org", Role: pools.RoleAdmin}, {Name: "bob", Role: pools.RoleViewer}, {Name: "ci.example.org", Role: pools.RoleOperator, Pools: []string{"storage"}},
		{Name: "spiffe://farm/bob", Role: pools.RoleAdmin},
	})
	s := newHarness(t, func(h *harness) {
		h.Addr, h.TLS = "127.0.0.1:0", conf
		h.Grants = func() []pools.Grant { return *grants.Load() }
	})
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	// do returns the status of a request; 0 when the server refuses the connection.
	do := func(cert *tls.Certificate, method, path, body, token string) int {
		t.Helper()
		transport := transport(cert)
		transport.DisableKeepAlives = true
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+l.Addr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	const nodes, config, boot, local = "/api/v1/nodes", "/api/v1/config", "/api/v1/nodes/m1/next-boot", `{"nextBoot": "local"}`
	alice := people.client("Alice", func(c *x509.Certificate) { c.EmailAddresses = []string{"alice@example.org"} })
	ci := people.client("ci", func(c *x509.Certificate) { c.DNSNames = []string{"ci.example.org"} })
	for _, tt := range []struct {
		name, method, path, body string
		cert                     *tls.Certificate
		token                    string
		code                     int
	}{
		{"a mail address", "GET", config, "", alice, "", 200},
		{"a change", "PUT", boot, local, alice, "", 200},
		{"a common name", "GET", nodes, "", people.client("bob"), "", 200},
		{"its role", "GET", config, "", people.client("bob"), "", 403},
		{"the highest role", "GET", config, "", people.client("bob", func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "farm", Path: "/bob"}} }), "", 200},
		{"an operator of another pool", "PUT", boot, local, ci, "", 403},
		{"none", "GET", nodes, "", nil, "", 401},
		{"without a role", "GET", nodes, "", people.client("eve"), "", 401},
		{"a part of a name", "GET", nodes, "", people.client("bob "), "", 401},
		{"a right token", "GET", config, "", people.client("bob"), secret, 200},
		{"a wrong token", "GET", nodes, "", alice, "wrong", 401},
		{"of another authority", "GET", nodes, "", others.client("bob"), "", 0},
		{"of no client", "GET", nodes, "", people.client("bob", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), "", 0},
		{"expired", "GET", nodes, "", people.client("bob", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }), "", 0},
	} {
		if got := do(tt.cert, tt.method, tt.path, tt.body, tt.token); got != tt.code {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.code)
		}
	}
	if got := s.Audit.(*machines).audit[0].Actor; !strings.HasPrefix(got, "certificate alice@example.org from 127.0.0.1:") {
		t.Errorf("the audit has %q", got)
	}
	grants.Store(&[]pools.Grant{{Name: "bob", Role: pools.RoleViewer}})
	if got := do(alice, "GET", nodes, "", ""); got != 401 {
		t.Errorf("after her role was taken: got %d", got)
	}
}

// TestPageByCertificate: a browser logs in to the page with its certificate, and has the role
// that the config gives it, until the certificate ends.
func TestPageByCertificate(t *testing.T) {
	people := newAuthority(t)
	grants := []pools.Grant{{Name: "alice", Role: pools.RoleAdmin}, {Name: "prometheus", Role: pools.RoleMetrics}}
	s := newHarness(t, func(h *harness) {
		h.TLS = &tls.Config{}
		h.Grants = func() []pools.Grant { return grants }
	})
	send := func(name, method, path, body, cookie string) *httptest.ResponseRecorder {
		t.Helper()
		req := httptest.NewRequestWithContext(t.Context(), method, "https://localhost:8443"+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		if name != "" { // as TLS says that it has verified it
			c := people.client(name, func(c *x509.Certificate) { c.NotAfter = s.now.Add(2 * time.Hour) })
			req.TLS.VerifiedChains = [][]*x509.Certificate{{c.Leaf, people.cert}}
		}
		w := httptest.NewRecorder()
		s.http.ServeHTTP(w, req)
		return w
	}
	const button, login = "by certificate</button>", "with=certificate&next=%2Fnodes"
	for name, want := range map[string]bool{"alice": true, "prometheus": false, "eve": false, "": false} {
		if got := strings.Contains(send(name, "GET", "/nodes", "", "").Body.String(), button); got != want {
			t.Errorf("the certificate of %q is offered: %v", name, got)
		}
		resp := send(name, "POST", "/login", login, "")
		if got := resp.Code == http.StatusSeeOther && resp.Header().Get("Location") == "/nodes"; got != want {
			t.Errorf("login of %q: got %d to %s", name, resp.Code, resp.Header().Get("Location"))
		}
	}
	line := send("alice", "POST", "/login", login, "").Header().Get("Set-Cookie")
	cookie, _, _ := strings.Cut(line, ";")
	shown := func() bool {
		return strings.Contains(send("", "GET", "/nodes", "", cookie).Body.String(), "alice, ")
	}
	if !shown() {
		t.Error("with the session: no page")
	}
	grants = grants[1:]
	if shown() {
		t.Error("after her role was taken there is a page")
	}
	grants = append(grants, pools.Grant{Name: "alice", Role: pools.RoleViewer})
	if !shown() {
		t.Error("with another role: no page")
	}
	s.now = s.now.Add(2 * time.Hour)
	if shown() {
		t.Error("after the end of the certificate there is a page")
	}
}

// TestCertificateEnds: a connection, and a watch on it, that began with a certificate are of no
// client any more when the certificate, or that of its authority, has ended.
func TestCertificateEnds(t *testing.T) {
	people := newAuthority(t)
	conf, transport := secure(people)
	var now atomic.Pointer[time.Time]
	began := time.Now()
	now.Store(&began)
	s := newHarness(t, func(h *harness) {
		h.Addr, h.TLS = "127.0.0.1:0", conf
		h.Now = func() time.Time { return *now.Load() }
		h.Grants = func() []pools.Grant { return []pools.Grant{{Name: "bob", Role: pools.RoleViewer}} }
	})
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: transport(people.client("bob"))}
	t.Cleanup(client.CloseIdleConnections)
	get := func(path string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	for step, want := range []int{200, 401} {
		resp := get("/api/v1/nodes")
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != want {
			t.Errorf("got %d, %v, want %d", resp.StatusCode, err, want)
		}
		if step == 0 {
			watch := bufio.NewReader(get("/api/v1/nodes?watch=true").Body)
			until(t, watch, "event: list", "")
			later := began.Add(2 * time.Hour)
			now.Store(&later)
			until(t, watch, "event: end", "")
		}
	}
}
