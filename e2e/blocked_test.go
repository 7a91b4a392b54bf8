package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// TestBlockedHTTP boots a machine that HTTP does not reach: loader, script, kernel, initrd
// and root image come by TFTP, its config by HTTPS, and its timeline says so.
func TestBlockedHTTP(t *testing.T) {
	b := buildTiny(t, t.TempDir())
	s := open(t, b, site.Config{Name: "drover-e2e-blocked", Farm: "testdata/blocked.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	const mac = "52:54:00:77:02:02"
	g := powerOn(t, s, lab.Machine{Name: "n3", NICs: card(mac)})
	for _, want := range []string{"connection refused", "the server answers by TFTP; trying HTTP once more", "by TFTP because HTTP failed: .* connection refused", "tiny: note drover was here"} {
		says(ctx, t, g, want)
	}
	fixture.Until(ctx, t, "n3 is online", func() (bool, error) { return reached(bootOf(ctx, t, s, mac), boots.StepOnline), nil })
	if !slices.ContainsFunc(logBoot(ctx, t, s, mac).Steps, func(e boots.StepTime) bool {
		return e.Step == boots.StepImage && strings.Contains(e.Detail, "by TFTP because HTTP failed")
	}) {
		t.Error("the timeline does not say that the image came by TFTP")
	}
	if log := read(t, s.Drover.Log()); !strings.Contains(log, "/root.squashfs client=10.77.0.32") {
		t.Error("the server's log does not have the image")
	}
}
