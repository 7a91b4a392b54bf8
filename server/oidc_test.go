package server

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/httpboot"
)

// pemOf writes the certificate of a server to a file.
func pemOf(t *testing.T, s *httptest.Server, file string) []byte {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}

// adminWith starts an API server that has one Secret, and writes the kubeconfig for it.
func adminWith(t *testing.T, path, key, value string) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path || r.Header.Get("Authorization") != "Bearer of-drover" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Secret", "apiVersion": "v1", "data": map[string][]byte{key: []byte(value)}})
	}))
	t.Cleanup(s.Close)
	ca := base64.StdEncoding.EncodeToString(pemOf(t, s, "admin-ca.pem"))
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: a, user: {token: of-drover}}]}`, s.URL, ca)
	if err := os.WriteFile("admin.kubeconfig", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOIDCReferences: the page trusts a provider by the authorities of oidc.ca and no others,
// and gives it the client's secret that is in a Secret of the admin cluster.
func TestOIDCReferences(t *testing.T) {
	const clientSecret = "a secret of the client"
	t.Chdir(t.TempDir())
	adminWith(t, "/api/v1/namespaces/drover/secrets/oidc", "client", clientSecret)
	got := make(chan string, 1)
	mux := http.NewServeMux()
	provider := httptest.NewUnstartedServer(mux)
	provider.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // handshakes end there
	provider.StartTLS()
	t.Cleanup(provider.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		at := provider.URL
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": at, "authorization_endpoint": at + "/auth", "token_endpoint": at + "/token", "jwks_uri": at + "/keys"})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_, secret, _ := r.BasicAuth()
		secret, _ = url.QueryUnescape(secret)
		got <- secret
		w.WriteHeader(http.StatusBadRequest)
	})
	pemOf(t, provider, "provider-ca.pem")
	other, _, err := httpboot.NodeKey("other.key") // with a certificate of its own
	if err == nil {
		err = os.WriteFile("other-ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate[0]}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ca      string
		trusted bool
	}{{"provider-ca.pem", true}, {"other-ca.pem", false}} {
		t.Run(tt.ca, func(t *testing.T) {
			page, log := oidcPage(t, provider.URL, tt.ca)
			there := page("/login/oidc?next=/nodes", "")
			to, err := url.Parse(there.Header().Get("Location"))
			if trusted := err == nil && there.Code == http.StatusSeeOther && to.Host == strings.TrimPrefix(provider.URL, "https://"); trusted != tt.trusted {
				t.Fatalf("to the provider: got %d to %s", there.Code, to)
			}
			if !tt.trusted {
				return
			}
			cookie, _, _ := strings.Cut(there.Header().Get("Set-Cookie"), ";")
			back := page("/login/callback?"+url.Values{"code": {"x"}, "state": {to.Query().Get("state")}}.Encode(), cookie)
			select {
			case secret := <-got:
				if secret != clientSecret {
					t.Errorf("the provider got %q", secret)
				}
			default:
				t.Errorf("the provider was not asked: %d %s", back.Code, back.Body)
			}
			if text := back.Body.String() + log.String(); strings.Contains(text, clientSecret) {
				t.Errorf("the secret is in the page or in the log:\n%s", text)
			}
		})
	}
}

// oidcPage starts a server whose page takes the logins of a provider, and returns a function
// that sends it requests, and its log.
func oidcPage(t *testing.T, issuer, ca string) (get func(path, cookie string) *httptest.ResponseRecorder, log *fixture.Log) {
	t.Helper()
	text := fmt.Sprintf(`server:
  interfaces: [eth1]
  address: 10.28.0.2
  adminKubeconfig: admin.kubeconfig
  oidc: {issuer: %q, ca: %s, clientID: drover, clientSecret: {fromSecret: {namespace: drover, name: oidc, key: client}}, url: "http://localhost:8443", roles: [{name: a, role: viewer}]}
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: web, image: debian-12}]
`, issuer, ca)
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log = new(fixture.Log)
	s, err := New(Options{Config: "drover.yaml", State: t.TempDir(), Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	handler := s.Web.Handler()
	return func(path, cookie string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:8443"+path, http.NoBody)
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		return w
	}, log
}
