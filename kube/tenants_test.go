package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/cluster"
	"drover/pools"
	"drover/pools/resolve"
)

func TestKubeconfigs(t *testing.T) {
	s := newAPIServer(t)
	good, err := os.ReadFile(s.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		content    []byte
		want       string
	}{
		{"good", "a.kubeconfig", good, ""},
		{"none named", "", nil, "its kubeconfig cannot be used: none is named in the config"},
		{"missing", "missing", nil, "no such file"},
		{"empty", "empty", []byte{}, "its current-context leads to no API server"},
		{"not YAML", "binary", []byte("\x00\x01"), "binary"},
		{"huge", "huge", make([]byte, 2<<20), "larger than 1048576 bytes"},
		{"a directory", ".", nil, "cannot be used"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := ""
			if tt.path != "" {
				path = filepath.Join(t.TempDir(), tt.path)
			}
			if tt.content != nil {
				if err := os.WriteFile(path, tt.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := &kube.Clusters{}
			c.Set([]pools.Cluster{{Name: "tenant-a", Kubeconfig: path}})
			defer c.Close()
			_, err := c.Join(t.Context(), plan(), addr(), "")
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want it to say %q", err, tt.want)
			}
		})
	}
}

// The operator replaces a kubeconfig: the next join uses the new one.
func TestKubeconfigReplaced(t *testing.T) {
	before, after := newAPIServer(t), newAPIServer(t)
	path := before.kubeconfig()
	c, _ := newClusters(t, path)
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(after.kubeconfig(), path); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour) // file times may be coarse
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err != nil {
		t.Fatal(err)
	}
	if got := after.count("POST secrets"); got != 1 {
		t.Errorf("%d tokens minted in the new cluster, want 1", got)
	}
}

// One tenant's API server accepts requests and never answers. The nodes of the other
// tenant still join.
func TestBrokenTenantDelaysNoOther(t *testing.T) {
	stuck, well := newAPIServer(t), newAPIServer(t)
	stuck.set("GET nodes", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := &kube.Clusters{}
	c.Set([]pools.Cluster{{Name: "stuck", Kubeconfig: stuck.kubeconfig()}, {Name: "well", Kubeconfig: well.kubeconfig()}})
	defer c.Close()

	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Join(ctx, plan(func(p *resolve.Plan) { p.Cluster = "stuck" }), addr(), "")
		failed <- err
	}()
	fixture.Eventually(t, "a join is stuck", func() bool { return stuck.count("GET nodes") > 0 })
	for i := range 20 {
		p := plan(func(p *resolve.Plan) { p.Cluster, p.Node = "well", fmt.Sprintf("n%d", i) })
		if _, err := c.Join(t.Context(), p, addr(), ""); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-failed:
		t.Errorf("the stuck join ended (%v) before the others: nothing is proved", err)
	default:
	}
	cancel()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "read the Node: given up") {
		t.Errorf("error of the stuck join: %v", err)
	}
}

// Nodes repeat a request that failed with a retry time: the test machine may be busy.
func TestManyJoinsShareClusterInfo(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	const nodes = 200
	var asked atomic.Int32
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			var got pools.JoinConfig
			var err error
			for again := true; again; {
				asked.Add(1)
				got, err = c.Join(t.Context(), plan(func(p *resolve.Plan) { p.Node = fmt.Sprintf("n%d", i) }), addr(), "")
				_, again = errors.AsType[*cluster.Error](err)
			}
			if err != nil {
				t.Error(err)
				return
			}
			_ = decode(t, got.Kubeadm)
		})
	}
	wg.Wait()
	limit := int(asked.Load())
	if got := s.count("POST secrets"); got < nodes || got > limit {
		t.Errorf("%d tokens for %d nodes that asked %d times", got, nodes, limit)
	}
	if got := s.count("GET configmaps"); got > limit {
		t.Errorf("cluster-info read %d times for %d joins: requests are not shared", got, limit)
	}
}

func TestSet(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err != nil {
		t.Fatal(err)
	}
	c.Set([]pools.Cluster{{Name: "other", Kubeconfig: s.kubeconfig()}})
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err == nil || !strings.Contains(err.Error(), `no cluster "tenant-a"`) {
		t.Errorf("error %v, want the cluster to be gone", err)
	}
	if _, err := c.Join(t.Context(), plan(func(p *resolve.Plan) { p.Cluster = "other" }), addr(), ""); err != nil {
		t.Error(err)
	}
}

func TestZeroValue(t *testing.T) {
	var c kube.Clusters
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err == nil {
		t.Error("joined a cluster that is not set")
	}
	if got := c.Check(t.Context()); len(got) != 0 {
		t.Errorf("Check of no cluster: %v", got)
	}
	c.Close()
}

func TestCheck(t *testing.T) {
	well, sick := newAPIServer(t), newAPIServer(t)
	sick.set("GET configmaps", fail(403, "Forbidden", "no"))
	now := time.Unix(1000, 0)
	c := &kube.Clusters{Now: func() time.Time { return now }}
	c.Set([]pools.Cluster{{Name: "well", Kubeconfig: well.kubeconfig()}, {Name: "sick", Kubeconfig: sick.kubeconfig()}, {Name: "none"}})
	defer c.Close()
	check := func(wellErr, sickErr string) {
		t.Helper()
		got := c.Check(t.Context())
		for name, want := range map[string]string{"well": wellErr, "sick": sickErr, "none": "cannot be used"} {
			err, ok := got[name]
			if !ok || (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	check("", "lacks the right")
	sick.set("GET configmaps", nil)
	now = now.Add(9 * time.Second)
	check("", "lacks the right") // the cached result
	now = now.Add(2 * time.Second)
	check("", "")
	if got := well.count("GET configmaps"); got != 2 {
		t.Errorf("asked %d times within 11 seconds, want 2", got)
	}
	well.set("GET configmaps", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	now = now.Add(time.Minute)
	check("does not answer in time", "")
}
