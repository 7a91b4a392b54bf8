package e2e_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
)

// TestBonds runs the tests that need bonds and VLANs in a machine with Debian's kernel,
// which has them, whatever kernel this host has.
func TestBonds(t *testing.T) {
	able(t)
	kernel, err := site.BuildKernel(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	root, err := buildcache.SourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{"cmd/drover": "TestVLANOnBond", "dhcp/ra": "TestVLANAndBond"}
	dir := t.TempDir()
	var args []string
	for pkg, name := range tests {
		binary := filepath.Join(dir, filepath.Base(pkg)+".test")
		if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "drover/"+pkg).CombinedOutput(); err != nil {
			t.Fatalf("go test -c %s: %v\n%s", pkg, err, out)
		}
		args = append(args, filepath.Join(root, pkg), binary, "^"+name+"$")
	}
	rack := openRack(t, "drover-e2e-bonds")
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	kernel.Arguments = "console=ttyS0,115200 quiet no_timer_check -- " + strings.Join(args, " ") // see testdata/services.yaml
	g, err := rack.PowerOn(lab.Machine{Name: "bonds", Kernel: kernel})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("console:\n%s", strings.Join(g.Tail(200), "\n"))
		}
	}()
	for _, name := range tests {
		says(ctx, t, g, "^--- PASS: "+name+" ")
	}
	says(ctx, t, g, "^host: done")
}
