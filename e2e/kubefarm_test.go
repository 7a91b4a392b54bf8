package e2e_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools"
	"drover/pools/boots"
)

// TestKubefarm converts values of kubefarm's chart, and boots the machine of the result: it
// has the address, the name, the options of its tags, the kernel arguments and the units that
// kubefarm gave it, its script of LTSP makes a bond with a VLAN, and it joins over that with
// its labels and taints. A script of LTSP on the machine checks most of it.
func TestKubefarm(t *testing.T) {
	soak(t)
	b := build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	farm := filepath.Join(t.TempDir(), "drover.yaml")
	s := open(t, b, site.Config{Name: "drover-e2e-kubefarm", Farm: converted(ctx, t, b, farm)})
	const mac = "52:54:00:77:01:01"
	plan, err := s.Expect(mac)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"example.org/site": "vienna", "example.org/network": "bond"}
	taints := []pools.Taint{{Key: "example.org/rack", Value: "7", Effect: "NoSchedule"}}
	if !reflect.DeepEqual(plan.Labels, labels) || !reflect.DeepEqual(plan.Taints, taints) {
		t.Errorf("labels %v, taints %v", plan.Labels, plan.Taints)
	}
	const model = "virtio-net-pci,speed=10000,duplex=full" // LACP uses no card whose speed is unknown
	powerOn(t, s, lab.Machine{Name: "n1", NICs: []lab.NIC{{MAC: mac, Model: model, Boot: true}, {MAC: "52:54:00:77:01:11", Model: model}}})
	fixture.Until(ctx, t, "n1 is Ready", func() (bool, error) {
		return reached(bootOf(ctx, t, s, mac), boots.StepReady), nil
	})
	logBoot(ctx, t, s, mac)
	fixture.Until(ctx, t, "n1 has its labels and taints, and runs a pod", func() (bool, error) {
		_, err := s.Look(ctx, plan)
		return err == nil, err
	})
}

// converted writes the config that drover makes of testdata/kubefarm.yaml, and returns its
// file.
func converted(ctx context.Context, t *testing.T, b *site.Built, file string) string {
	t.Helper()
	args := []string{"import", "kubefarm", "testdata/kubefarm.yaml", "--interface", lab.Bridge, "--address", "10.77.0.1", "--image", site.Image, "--cluster", "tenant", "--output", file}
	cmd := exec.CommandContext(ctx, b.Drover, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("drover import: %v\n%s", err, out)
	}
	return file
}
