package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools"
	"drover/pools/boots"
)

// TestFallsBack promotes an image whose init ends: the machine panics, restarts, panics again, and then
// boots the generation that was online on it, without anybody at hand. A roll-back ends that.
func TestFallsBack(t *testing.T) {
	const mac = "52:54:00:77:09:01"
	b := buildTiny(t, t.TempDir())
	good := tinyTree(t)
	bad := tinyTree(t)
	install(t, bad, "/init", b.Drover) // without arguments it prints its help, and ends
	ids := [2]string{generationIn(t, b, good), generationIn(t, b, bad, "--stage")}

	s := open(t, b, site.Config{Name: "drover-e2e-fallback", Farm: "testdata/fallback.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	promote := func(id string) {
		t.Helper()
		var c pools.Channel
		if err := s.Drover.Call(ctx, http.MethodPost, "/api/v1/images:promote", pools.PromoteRequest{Image: "fallback@" + id}, &c); err != nil {
			t.Fatal(err)
		}
	}
	status := func() (pools.NodeStatus, error) {
		var n pools.NodeInfo
		if err := s.Drover.Call(ctx, http.MethodGet, "/api/v1/nodes/n1", nil, &n); err != nil || n.Status == nil {
			return pools.NodeStatus{}, fmt.Errorf("n1: %+v, %w", n, err)
		}
		return *n.Status, nil
	}
	promote(ids[0])
	g := powerOn(t, s, lab.Machine{Name: "n1-good", NICs: card(mac)})
	fixture.Until(ctx, t, "n1 is online", func() (bool, error) { return reached(bootOf(ctx, t, s, mac), boots.StepOnline), nil })
	if err := g.PowerOff(); err != nil {
		t.Error(err)
	}
	promote(ids[1])
	powerOn(t, s, lab.Machine{Name: "n1-bad", NICs: card(mac)})
	fixture.Until(ctx, t, "n1 has fallen back, and is online", func() (bool, error) {
		now, err := status()
		return now.FellBack == ids[1] && now.State == pools.NodeOnline && now.Generation == ids[0], err
	})
	logBoot(ctx, t, s, mac)
	var all []boots.Record
	if err := s.Drover.Call(ctx, http.MethodGet, "/api/v1/boots", nil, &all); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, r := range all {
		if r.Generation == ids[1] {
			failed++
		}
	}
	if failed != pools.FallBackAfter {
		t.Errorf("it booted the bad generation %d times, want %d", failed, pools.FallBackAfter)
	}
	fixture.WantText(t, "the log", read(t, s.Drover.Log()), "a node falls back", "node=n1")
	var c pools.Channel
	if err := s.Drover.Call(ctx, http.MethodPost, "/api/v1/images:rollback", pools.RollbackRequest{Image: "fallback"}, &c); err != nil || c.Current != ids[0] {
		t.Fatalf("got %+v, %v", c, err)
	}
	fixture.Until(ctx, t, "n1 boots what its pool says", func() (bool, error) {
		now, err := status()
		return now.FellBack == "" && !now.Outdated, err
	})
}

// generationIn builds a generation of the image fallback, and returns its ID.
func generationIn(t *testing.T, b *site.Built, root string, more ...string) string {
	t.Helper()
	args := append([]string{"image", "build", "--images", b.Images, "--name", "fallback", "-o", "json", "--init", filepath.Join(b.Root, "bin", "drover-init"), "dir:" + root}, more...)
	out, err := exec.CommandContext(t.Context(), b.Drover, args...).Output()
	if err != nil {
		t.Fatalf("drover image build: %v\n%s", err, out)
	}
	var image struct{ ID string }
	if err := json.Unmarshal(out, &image); err != nil {
		t.Fatal(err)
	}
	return image.ID
}
