package controlplane_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
)

const rbac = "../../deploy/rbac.yaml"

// Two tenants start at the same time. Each allows drover its necessary actions and no
// others, is separate from the other, and leaves no process behind.
func TestTenants(t *testing.T) {
	bin, dir := buildcache.Programs(t), t.TempDir()
	var planes [2]*controlplane.Cluster
	var wg sync.WaitGroup
	for i, name := range []string{"tenant-a", "tenant-b"} {
		wg.Go(func() {
			p, err := controlplane.Start(t.Context(), controlplane.Config{
				Name: name, BinDir: bin, Dir: filepath.Join(dir, name), RBAC: rbac, Log: t.Output(),
			})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(p.Stop)
			planes[i] = p
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	a, b := planes[0], planes[1]
	t.Run("apart", func(t *testing.T) { testApart(t, a, b) })
	t.Run("rights", func(t *testing.T) { testRights(t, a) })
	t.Run("join", func(t *testing.T) { testJoin(t, a, b) })
	t.Run("rejoin", func(t *testing.T) { testRejoin(t, a) })
	t.Run("foreign", func(t *testing.T) { testForeignNode(t, a) })
	t.Run("tend", func(t *testing.T) { testReconcile(t, a) })
	t.Run("secret", func(t *testing.T) { testSecret(t, a, b) })
	t.Run("objects", func(t *testing.T) { testObjects(t, a) })
	t.Run("move", func(t *testing.T) { testMove(t, a, b) })
	t.Run("renewal", func(t *testing.T) { testRenewal(t, a, b) })
	t.Run("expiry", func(t *testing.T) { testExpiry(t, a) })
	t.Run("approver", func(t *testing.T) { testApprover(t, a) })
	t.Run("used once", func(t *testing.T) { testUsedOnce(t, a) })
	t.Run("shared", func(t *testing.T) { testShared(t, a) })
	t.Run("many", func(t *testing.T) { testMany(t, b) })
	t.Run("power cut", func(t *testing.T) { testPowerCut(t, b) })
	t.Run("outage", func(t *testing.T) { testOutage(t, a, b) })
	t.Run("inspect", func(t *testing.T) { testInspect(t, b) })
	t.Run("stop", func(t *testing.T) { testStop(t, a, b) })
}

func testApart(t *testing.T, a, b *controlplane.Cluster) {
	if _, err := a.Kubectl(t.Context(), nil, "create", "namespace", "only-a"); err != nil {
		t.Error(err)
	}
	if _, err := b.Kubectl(t.Context(), nil, "get", "namespace", "only-a"); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("tenant-b asked for a namespace of tenant-a: %v, want NotFound", err)
	}
	out, err := b.KubectlAs(t.Context(), a.Client, nil, "get", "nodes", "--server=https://"+b.Endpoint(), "--insecure-skip-tls-verify")
	if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("drover of tenant-a asked tenant-b: %q, %v; want Unauthorized", out, err)
	}
}

func testStop(t *testing.T, planes ...*controlplane.Cluster) {
	for _, p := range planes {
		p.Stop()
		if c, err := net.Dial("tcp", p.Endpoint()); err == nil {
			_ = c.Close()
			t.Errorf("%s still listens on %s", p.Name, p.Endpoint())
		}
		if out, err := exec.Command("pgrep", "-f", filepath.Dir(p.Admin)).Output(); err == nil {
			t.Errorf("processes of %s left: %s", p.Name, out)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	bin := t.TempDir()
	for _, name := range controlplane.Programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho no such luck >&2\nexit 3\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		cfg  controlplane.Config
		want string
	}{
		{"nothing", controlplane.Config{}, "are needed"},
		{"programs missing", controlplane.Config{Name: "x", BinDir: used, Dir: t.TempDir()}, "program missing"},
		{"a directory in use", controlplane.Config{Name: "x", BinDir: bin, Dir: used}, "holds something else"},
		{"programs that end at once", controlplane.Config{Name: "x", BinDir: bin, Dir: t.TempDir()}, "no such luck"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := controlplane.Start(t.Context(), tt.cfg)
			if err == nil {
				p.Stop()
				t.Fatalf("started, want an error with %q", tt.want)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want it to say %q", err, tt.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(used, "thesis.txt")); err != nil {
		t.Errorf("a directory in use was deleted: %v", err)
	}
}
