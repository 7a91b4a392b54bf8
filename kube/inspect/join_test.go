package inspect_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/cluster"
	"drover/kube/inspect"
	"drover/kube/token"
	"drover/pools"
)

// TestClusterInfoOfAHostileTenant: a cluster-info is a kubeconfig, which can name files
// and programs of this host. drover cluster check takes nothing but the address and the
// CA from it: neither is the file sent to the tenant's server, nor does the program run.
func TestClusterInfoOfAHostileTenant(t *testing.T) {
	var sent atomic.Value
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent.Store(r.Header.Get("Authorization")) }))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	secret := filepath.Join(dir, "api.token")
	if err := os.WriteFile(secret, []byte("the-servers-own-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	for name, user := range map[string]string{
		"a file":    "tokenFile: " + secret,
		"a program": "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: [" + filepath.Join(dir, "ran") + "]}",
	} {
		text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: a, user: u}}], users: [{name: u, user: {%s}}],"+
			"clusters: [{name: a, cluster: {server: '%s', certificate-authority-data: %s}}]}", user, s.URL, ca)
		info, err := cluster.ParseInfo(map[string]string{"kubeconfig": text})
		if err != nil {
			t.Fatal(err)
		}
		m := token.Minter{Cluster: cluster.New(pools.Cluster{Name: "tenant-a"}, "", time.Now), Now: time.Now}
		client, err := inspect.NodeClient(m, info, token.Token{ID: "abcdef", Secret: "0123456789abcdef"})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubeadm-config", metav1.GetOptions{})
		if got := sent.Load(); got != "Bearer abcdef.0123456789abcdef" {
			t.Errorf("%s: the tenant's server got %q, want the join token", name, got)
		}
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}
