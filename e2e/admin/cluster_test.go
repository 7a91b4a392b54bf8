package admin_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/admin"
	"drover/e2e/buildcache"
	"drover/e2e/fixture"
	"drover/e2e/lab"
)

// TestCluster runs a pod in an admin cluster and reads its log. At the end nothing is left
// on the host.
func TestCluster(t *testing.T) {
	fixture.Root(t)
	if !fixture.Must() {
		fixture.Missing(t, "an admin cluster on this host: set DROVER_E2E=1 to build it")
	}
	programs, err := admin.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	hello, err := buildcache.HelloImage(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	address := netip.MustParseAddr("10.77.0.1")
	rack, err := lab.Open("drover-admin-test", t.TempDir(), netip.PrefixFrom(address, 24))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rack.Close(); err != nil {
			t.Error(err)
		}
	})
	before := kernelParameters(t)
	c, err := programs.Open(ctx, admin.Config{Rack: rack, Dir: filepath.Join(rack.Dir, "admin"), Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wantNothingLeft(t, c, before) })
	if err := c.Import(ctx, hello); err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "the ServiceAccount of pods", func() (bool, error) {
		_, err := c.Kubectl(ctx, nil, "get", "serviceaccount", "default")
		return err == nil, err
	})
	if _, err := c.Kubectl(ctx, nil, "run", "hello", "--image=localhost/hello:1", "--image-pull-policy=Never"); err != nil {
		t.Fatal(err)
	}
	var said string
	fixture.Until(ctx, t, "the log of the pod", func() (bool, error) {
		said, err = c.Kubectl(ctx, nil, "logs", "hello")
		return said != "", err
	})
	fixture.WantText(t, "the log of the pod", said, "8080")
}

// kernelParameters returns the parameters of the host that a kubelet or kube-proxy sets.
func kernelParameters(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, glob := range []string{"vm/*", "kernel/panic*", "kernel/keys/root*", "net/bridge/*", "net/ipv4/ip_forward", "net/ipv4/conf/all/*", "net/netfilter/nf_conntrack_max"} {
		files, err := filepath.Glob("/proc/sys/" + glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if value, err := os.ReadFile(file); err == nil { // some can only be written
				fmt.Fprintf(&all, "%s=%s", file, value)
			}
		}
	}
	return all.String()
}

// wantNothingLeft closes the cluster, and fails the test if the host has any process, mount,
// cgroup or kernel parameter of it.
func wantNothingLeft(t *testing.T, c *admin.Cluster, before string) {
	t.Helper()
	if running, err := c.Processes(); err != nil || len(running) < 4 {
		t.Errorf("the node has processes %q, %v", running, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Left(); err != nil {
		t.Error(err)
	}
	if after := kernelParameters(t); after != before {
		t.Errorf("kernel parameters of the host were\n%s\nand are\n%s", before, after)
	}
}
