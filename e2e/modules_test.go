package e2e_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
)

// TestKernelModules has Dockerfile.image compile a kernel module that is not part of Linux,
// from a package of Debian with its source. A machine with the image's kernel loads it.
func TestKernelModules(t *testing.T) {
	able(t)
	const module = "dm_writeboost"
	stage, err := buildcache.NewModules(t.Context(), t.Output(), "dm-writeboost-dkms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	})
	kernel, err := site.KernelOf(t.Context(), t.Output(), t.TempDir(), filepath.Join(stage.Root, "kernel"), module)
	if err != nil {
		t.Fatal(err)
	}
	kernel.Arguments = "console=ttyS0,115200 quiet no_timer_check MODULES=" + module // see testdata/services.yaml
	rack := openRack(t, "drover-e2e-modules")
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	g, err := rack.PowerOn(lab.Machine{Name: "modules", Kernel: kernel})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("console:\n%s", strings.Join(g.Tail(200), "\n"))
		}
	}()
	says(ctx, t, g, `host: modules .*\b`+module+`\b`)
	says(ctx, t, g, "^host: done")
}
