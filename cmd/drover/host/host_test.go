package host

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"drover/e2e/fixture"
)

// Commands of hosts use the token that a server has renewed in its state directory, wherever
// that is.
func TestRenewedToken(t *testing.T) {
	var used string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		used = r.Header.Get("Authorization")
		http.Error(w, "no more", http.StatusForbidden)
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	dir := fixture.Tree(t, map[string]string{
		"drover.yaml": `server: {interfaces: [lo], address: 10.0.0.1}
subnets: [{cidr: 10.0.0.0/24}]
clusters:
  - name: tenant-a
    kubeconfig: a.kubeconfig
    hostNetwork: {podCIDR: 10.244.0.0/16, serviceCIDR: 10.96.0.0/12, hostPodCIDR: 10.244.240.0/20}
pools: [{name: web, image: debian-12}]
`,
		"a.kubeconfig": fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: %s, certificate-authority-data: %s}}]
users: [{name: a, user: {token: first}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
`, server.URL, base64.StdEncoding.EncodeToString(authority)),
		"state/cluster-tokens.json": fmt.Sprintf(`{"tenant-a": {"for": "%x", "token": "second"}}`, sha256.Sum256([]byte("first"))),
	})
	state := filepath.Join(dir, "state")
	for _, tt := range []struct{ state, want string }{{state, "Bearer second"}, {t.TempDir(), "Bearer first"}} {
		cmd := NewCommand()
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{"list", "-c", filepath.Join(dir, "drover.yaml"), "--state", tt.state})
		if err := cmd.ExecuteContext(t.Context()); err == nil || used != tt.want {
			t.Errorf("with the state in %s: %q, %v, want %q", tt.state, used, err, tt.want)
		}
	}
}
