package e2e_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

const ipv6Farm = `server: {interfaces: [br0], address: 10.77.0.1, routerAdvertisements: managed}
subnets:
  - {cidr: 10.77.0.0/24, network: hall}
  - {cidr: "fd00:77::/64", network: hall}
pools:
  - name: web
    image: debian-12
    nodes:
      - {name: m1, macs: ["52:54:00:77:a6:01"], ip6: "fd00:77::51"}
      - {name: m2, macs: ["52:54:00:77:a6:02"], ip6: "fd00:77::52"}
`

// TestIPv6Firmware boots machines with UEFI that have IPv6 only, by PXE and by HTTP Boot:
// the firmware loads iPXE, which is sent to DHCPv6 by the router advertisement and fetches
// its script.
func TestIPv6Firmware(t *testing.T) {
	able(t)
	const ipxe = "/usr/lib/ipxe/snponly.efi"
	if _, err := os.Stat(ipxe); err != nil {
		fixture.Missing(t, err)
	}
	dir := t.TempDir()
	drover, config, loaders := filepath.Join(dir, "drover"), filepath.Join(dir, "drover.yaml"), filepath.Join(dir, "loaders")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", drover, "drover/cmd/drover").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.Mkdir(loaders, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := lab.CopyFile(filepath.Join(loaders, "snponly.efi"), ipxe); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(ipv6Farm), 0o600); err != nil {
		t.Fatal(err)
	}
	rack, err := lab.Open("drover-e2e-ipv6", filepath.Join(dir, "rack"), netip.MustParsePrefix("10.77.0.1/24"), netip.MustParsePrefix("fd00:77::1/64"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rack.Close(); err != nil {
			t.Error(err)
		}
	})
	server, err := rack.Start("drover", exec.Command(drover, "serve", "-c", config, "--state", filepath.Join(dir, "state"), "--loaders", loaders))
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		b, _ := os.ReadFile(server.Log) // no file: it has said nothing
		return string(b)
	}
	defer func() {
		if t.Failed() {
			t.Logf("drover said:\n%s", said())
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for _, m := range []struct {
		lab.Machine
		loader, script string // in the log of the server
	}{
		{lab.Machine{Name: "m1", Firmware: lab.UEFI, IPv6: true, Memory: 512, NICs: card("52:54:00:77:a6:01")},
			`part=tftp file=snponly\.efi client=fd00:77::51 `, `path=/boot/52-54-00-77-a6-01 .* addr=fd00:77::51`},
		{lab.Machine{Name: "m2", Firmware: lab.UEFI, HTTPBoot: true, Memory: 512, NICs: card("52:54:00:77:a6:02")},
			`path=/loaders/snponly\.efi .* addr=fd00:77::52`, `path=/boot/52-54-00-77-a6-02 .* addr=fd00:77::52`},
	} {
		g, err := rack.PowerOn(m.Machine)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{m.loader, m.script} {
			re := regexp.MustCompile(line)
			fixture.Until(ctx, t, m.Name+": "+line, func() (bool, error) { return re.MatchString(said()), nil })
		}
		t.Logf("%s: script %.0f s after power-on", m.Name, time.Since(g.Started).Seconds())
		if err := g.PowerOff(); err != nil {
			t.Error(err)
		}
	}
}

const ipv6NodeFarm = `server: {interfaces: [br0], address: 10.77.0.1, routerAdvertisements: managed, api: "127.0.0.1:8443"}
subnets: [{cidr: 10.77.0.0/24, network: hall}, {cidr: "fd00:77::/64", network: hall}]
tags: {all: {kernelArgs: "console=ttyS0,115200 no_timer_check"}}
pools:
  - name: web
    image: tiny-amd64
    nodes: [{name: m3, macs: ["52:54:00:77:a6:03"], ip6: "fd00:77::53"}]
`

// TestIPv6Node boots a machine that has IPv6 only, from its UEFI to a system whose agent
// reports to the server.
func TestIPv6Node(t *testing.T) {
	able(t)
	dir := t.TempDir()
	b, err := site.BuildTiny(t.Context(), t.Output(), filepath.Join(dir, "loaders"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(config, []byte(ipv6NodeFarm), 0o600); err != nil {
		t.Fatal(err)
	}
	rack, err := lab.Open("drover-e2e-ipv6-node", filepath.Join(dir, "rack"), netip.MustParsePrefix("10.77.0.1/24"), netip.MustParsePrefix("fd00:77::1/64"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rack.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	d := &lab.Drover{
		Binary: b.Drover, Config: config, State: filepath.Join(dir, "state"), Images: b.Images, Loaders: b.Loaders, API: "127.0.0.1:8443",
	}
	if err := os.MkdirAll(d.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := rack.StartDrover(ctx, d); err != nil {
		t.Fatal(err)
	}
	g, err := rack.PowerOn(lab.Machine{Name: "m3", Firmware: lab.UEFI, IPv6: true, NICs: card("52:54:00:77:a6:03")})
	if err != nil {
		t.Fatal(err)
	}
	s := &site.Site{Rack: rack, Drover: d}
	defer story(t, s, g)
	chain{}.says(ctx, t, g, `tiny: card .* 52:54:00:77:a6:03 has fd00:77::53/128`)
	fixture.Until(ctx, t, "m3 is online", func() (bool, error) {
		return reached(bootOf(ctx, t, s, "52:54:00:77:a6:03"), boots.StepOnline), nil
	})
	for _, step := range bootOf(ctx, t, s, "52:54:00:77:a6:03").Steps {
		t.Logf("%-12s %s %s", step.Step, step.Detail, step.Error)
	}
}
