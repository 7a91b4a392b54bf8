package cluster_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover/kube/cluster"
	"drover/pools"
)

// TestFailingClient: a farm of 10 000 nodes asks for the client of its cluster at each join and
// boot. Without a kubeconfig each of them made a client of its own, of 60 microseconds.
func TestFailingClient(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	c := cluster.New(pools.Cluster{Name: "tenant-a"}, path, time.Now)
	missing := c.Client()
	if missing != c.Client() {
		t.Error("without a kubeconfig each call makes a client")
	}
	if err := os.WriteFile(path, []byte("no YAML: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.Client() == missing {
		t.Error("the client of a bad kubeconfig is that of a missing one, with its error")
	}
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: secret}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := c.Client()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if again := c.Client(); again == good || again != c.Client() {
		t.Error("a kubeconfig that is gone leaves its client, or each call makes one")
	}
}
