package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// node is a Node of the cluster.
type node struct {
	site.Node
	Metadata struct {
		UID    string            `json:"uid"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

// rack returns the label of a Node that a tag of testdata/rejoin.yaml sets.
func (n *node) rack() string {
	_, role := n.Metadata.Labels["node-role.kubernetes.io/"+n.Metadata.Labels["example.org/rack"]]
	for _, t := range n.Spec.Taints {
		if t.Key == "example.org/rack" {
			return fmt.Sprintf("%s %t %s", n.Metadata.Labels["example.org/rack"], role, t.Value)
		}
	}
	return "no taint"
}

const rejoinRack = "drover-e2e-rejoin"

// TestRejoin boots a machine, edits its tag while it runs, forges its DISCOVER, kills it
// and starts it again at once.
func TestRejoin(t *testing.T) {
	soak(t)
	b := build(t)
	s := open(t, b, site.Config{Name: rejoinRack, Farm: "testdata/rejoin.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	const mac = "52:54:00:77:01:01"
	machine := lab.Machine{Name: "n1", NICs: card(mac)}
	g := powerOn(t, s, machine)
	await := func(what, uid, rack string) (n *node) {
		fixture.Until(ctx, t, what, func() (bool, error) {
			n = new(node)
			if err := s.Get(ctx, "tenant", n, "node", "n1"); err != nil {
				return false, err
			}
			if !n.Ready() || n.Metadata.UID == uid || n.rack() != rack {
				return false, fmt.Errorf("Ready %t, uid %s, rack %s", n.Ready(), n.Metadata.UID, n.rack())
			}
			return true, nil
		})
		return n
	}
	first := await("n1 is Ready", "", "r1 true r1").Metadata.UID
	boot := time.Since(g.Started)
	t.Logf("one boot takes %.1f s", boot.Seconds())

	edited := editRack(t, s, "r1", "r2")
	await("n1 follows the edit of its tag", "", "r2 true r2")
	t.Logf("seen %.1f s after the edit", time.Since(edited).Seconds())

	forgeDiscover(t, mac)
	fixture.Until(ctx, t, "the DISCOVER has begun a boot", func() (bool, error) {
		return !reached(bootOf(ctx, t, s, mac), boots.StepScript), nil
	})
	time.Sleep(45 * time.Second) // more than the time after which a kubelet counts as dead
	if n := await("n1 runs on", "", "r2 true r2"); n.Metadata.UID != first {
		t.Error("a forged DISCOVER took the Node away")
	}

	if err := g.PowerOff(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	editRack(t, s, "r2", "r3")
	machine.Name = "n1-again"
	powerOn(t, s, machine)
	await("n1 is Ready again, with fresh labels", first, "r3 true r3")
	took := time.Since(killed)
	t.Logf("Ready %.1f s after it was killed", took.Seconds())
	logBoot(ctx, t, s, mac)
	fixture.Until(ctx, t, "the boot is Ready", func() (bool, error) { return reached(bootOf(ctx, t, s, mac), boots.StepReady), nil })
	log := read(t, s.Drover.Log())
	if !strings.Contains(log, "deleted the Node of an earlier boot") {
		t.Error("drover did not delete the Node of the first boot")
	}
}

// editRack edits the tag in drover's config.
func editRack(t *testing.T, s *site.Site, before, after string) time.Time {
	t.Helper()
	file := filepath.Join(s.Dir, "drover.yaml")
	text := []byte(read(t, file))
	for _, form := range []string{"rack: %s,", "node-role.kubernetes.io/%s:", "value: %s,"} {
		old := fmt.Appendf(nil, form, before)
		if !bytes.Contains(text, old) {
			t.Fatalf("%s has no %q", file, old)
		}
		text = bytes.ReplaceAll(text, old, fmt.Appendf(nil, form, after))
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return time.Now()
}

// forgeDiscover sends the DISCOVER of a machine's firmware from another port of the
// network.
func forgeDiscover(t *testing.T, mac string) {
	t.Helper()
	hw, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dhcpv4.NewDiscovery(hw, dhcpv4.WithBroadcast(true),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00000:UNDI:002001")),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 0}))
	if err != nil {
		t.Fatal(err)
	}
	host := neighbor(t, rejoinRack, "forger")
	host.Broadcast(t, "eth0", d.ToBytes())
}
