package externalhost_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/cluster"
	"drover/kube/externalhost"
	"drover/pools"
)

// apiServer has no objects. It refuses Nodes whose name begins with bad, and does not answer
// for Nodes whose name begins with dead.
type apiServer struct {
	mu   sync.Mutex
	made []string // names of Nodes
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	if r.Method == http.MethodGet {
		answer(http.StatusOK, metav1.PartialObjectMetadataList{})
		return
	}
	body, _ := io.ReadAll(r.Body)
	if !strings.HasSuffix(r.URL.Path, "/nodes") {
		answer(http.StatusCreated, json.RawMessage(body))
		return
	}
	var n corev1.Node
	_ = json.Unmarshal(body, &n)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasPrefix(n.Name, "bad"):
		answer(http.StatusUnprocessableEntity, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422, Message: "no"})
	case strings.HasPrefix(n.Name, "dead"):
		panic(http.ErrAbortHandler)
	default:
		s.made = append(s.made, n.Name)
		answer(http.StatusCreated, n)
	}
}

// reconcile has the server make these hosts.
func reconcile(t *testing.T, names ...string) (*apiServer, *externalhost.Hosts, error) {
	t.Helper()
	s := new(apiServer)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := externalhost.New(cluster.New(pools.Cluster{Name: "c"}, kubeconfig, time.Now), slog.New(slog.DiscardHandler), time.Now)
	var hosts []pools.ExternalHost
	for i, name := range names {
		hosts = append(hosts, pools.ExternalHost{Name: name, Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), Size: 24})
	}
	h.Set(hosts, &pools.HostNetwork{HostPodCIDR: netip.MustParsePrefix("10.244.128.0/17")})
	return s, h, h.Reconcile(t.Context())
}

// TestBrokenHostsStopNoOthers: the hosts behind those that the cluster refuses are made, and the
// error has only the first ones.
func TestBrokenHostsStopNoOthers(t *testing.T) {
	s, h, err := reconcile(t, "bad1", "bad2", "bad3", "bad4", "bad5", "bad6", "bad7", "gw1", "gw2")
	if got := strings.Join(s.made, " "); !strings.HasSuffix(got, "gw1 gw2") {
		t.Errorf("made %q, want gw1 and gw2, too", got)
	}
	if err == nil || !strings.Contains(err.Error(), `"bad5"`) || strings.Contains(err.Error(), `"bad6"`) || !strings.Contains(err.Error(), "and 2 more hosts") {
		t.Errorf("got %v", err)
	}
	for name, want := range map[string]bool{"bad7": true, "gw2": false} {
		if _, err := h.State(name); (err != nil) != want {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

// TestSilentClusterIsNotAskedForEachHost: all hosts would wait for it.
func TestSilentClusterIsNotAskedForEachHost(t *testing.T) {
	var names []string
	for n := range 30 {
		names = append(names, fmt.Sprint("dead", n))
	}
	s, _, err := reconcile(t, append(names, "gw1")...)
	if err == nil || !strings.Contains(err.Error(), `"dead4"`) || strings.Contains(err.Error(), "more hosts") {
		t.Errorf("made %q, error %v", s.made, err)
	}
}
