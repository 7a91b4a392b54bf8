package e2e_test

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"drover/e2e/attack"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/e2e/netns"
	"drover/pools"
	"drover/pools/boots"
)

// TestReadyUnderAttack (H5, H7, H8) boots a machine until it is Ready while a host on its
// network sends 4000 DISCOVERs of made-up machines a second, holds as many TFTP transfers
// as it can, and reads root images slowly from three addresses. Another machine boots without an
// attack first, for comparison.
func TestReadyUnderAttack(t *testing.T) {
	soak(t)
	b := build(t)
	const rack = "drover-e2e-attacked"
	s := open(t, b, site.Config{Name: rack, Farm: "testdata/attacked.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	t.Logf("alone: Ready %s after power-on", readyAfter(ctx, t, s, "n1", "52:54:00:77:01:01"))
	attacks, stop := context.WithCancel(ctx)
	ended := besiege(attacks, t, netns.Namespace(rack), b)
	t.Cleanup(func() { stop(); ended.Wait() })
	t.Logf("under attack: Ready %s after power-on", readyAfter(ctx, t, s, "n2", "52:54:00:77:01:02"))
}

// readyAfter boots a machine, waits until it is Ready, and turns it off.
func readyAfter(ctx context.Context, t *testing.T, s *site.Site, name, mac string) time.Duration {
	t.Helper()
	g := powerOn(t, s, lab.Machine{Name: name, NICs: card(mac)})
	fixture.Until(ctx, t, name+" is Ready", func() (bool, error) {
		var records []boots.Record
		if err := s.Drover.Call(ctx, http.MethodGet, "/api/v1/boots?node="+name, nil, &records); err != nil {
			return false, err
		}
		for _, r := range records {
			if reached(r, boots.StepReady) {
				return true, nil
			}
		}
		return false, nil
	})
	took := time.Since(g.Started).Round(100 * time.Millisecond)
	if err := g.PowerOff(); err != nil {
		t.Error(err)
	}
	return took
}

// besiege attacks the rack's server from a host of its network until ctx ends.
func besiege(ctx context.Context, t *testing.T, rack netns.Namespace, b *site.Built) *sync.WaitGroup {
	t.Helper()
	host := neighbor(t, rack, "attacker")
	rack.IP(t, "link", "set", "attacker", "type", "bridge_slave", "learning", "off") // it sends from many MACs
	slow := []string{"10.77.0.201", "10.77.0.202", "10.77.0.203"}
	for _, a := range slow {
		host.IP(t, "addr", "add", a+"/24", "dev", "eth0")
	}
	spoofed := netip.MustParsePrefix("10.77.0.128/25")
	if err := attack.Silent(host, spoofed); err != nil {
		t.Fatal(err)
	}
	generation, err := os.Readlink(filepath.Join(b.Images, site.Image, "current"))
	if err != nil {
		t.Fatal(err)
	}
	root := pools.ImagePath + site.Image + "/" + filepath.Base(generation) + "/root.squashfs"

	var all sync.WaitGroup
	for name, run := range map[string]func() (int, error){
		"DISCOVERs":    func() (int, error) { return attack.Discovers(ctx, host, 4000) },
		"TFTP":         func() (int, error) { return attack.Requests(ctx, host, spoofed, 100) },
		"slow readers": func() (int, error) { return attack.SlowReaders(ctx, host, root, 64, slow...) },
	} {
		all.Go(func() {
			if n, err := run(); err != nil || n == 0 {
				t.Errorf("%s: sent %d: %v", name, n, err)
			}
		})
	}
	return &all
}
