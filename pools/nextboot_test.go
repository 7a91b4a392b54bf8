package pools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/pools"
)

func TestParseNextBoot(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for _, s := range []string{"local", "rescue", "image=debian-12", "image=debian-12@sha256:" + digest} {
		if n, err := pools.ParseNextBoot(s); err != nil || string(n) != s {
			t.Errorf("%s: got %q, %v", s, n, err)
		}
	}
	for s, want := range map[string]string{
		"":              "is not a next boot",
		"Local":         "is not a next boot",
		"image":         "is not a next boot",
		"image=":        "is not an image",
		"image=../x":    "is not an image",
		"image=a@b":     "is not an image",
		"image=a\n":     "is not an image",
		"rescue image=": "is not a next boot",
	} {
		if n, err := pools.ParseNextBoot(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want %q", s, n, err, want)
		}
	}
}

const firmwareConfig = `server: {interfaces: [eth1], address: 10.28.0.2, templates: boot, tftpSinglePort: true}
subnets: [{cidr: 10.28.0.0/16}]
tags:
  all: {menuTimeout: 10}
  m400: {uboot: {wrap: true, load: 0x00080000, fdt: m400.dtb}}
  virt: {menuTimeout: 0, uboot: {load: "0x40400000", entry: 0x40400040}}
pools:
  - {name: arm, image: debian-12, tags: [m400], nodes: [
      {name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11},
      {name: m2, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12, tags: [virt]}]}
`

func TestFirmwareSettings(t *testing.T) {
	farm, err := pools.Parse("drover.yaml", []byte(firmwareConfig))
	if err != nil {
		t.Fatal(err)
	}
	one := farm.Resolve(pools.Query{MAC: mac(t, "52:54:00:00:00:01")})
	if load, entry := one.UBoot.Addresses(); one.MenuTimeout != 10 || !one.UBoot.Wrapped() || load != 0x80000 || entry != load || one.UBoot.FDT != "m400.dtb" {
		t.Errorf("m1: got menu %d, U-Boot %+v", one.MenuTimeout, one.UBoot)
	}
	two := farm.Resolve(pools.Query{MAC: mac(t, "52:54:00:00:00:02")})
	if load, entry := two.UBoot.Addresses(); two.MenuTimeout != 0 || !two.UBoot.Wrapped() || load != 0x40400000 || entry != 0x40400040 {
		t.Errorf("m2: got menu %d, U-Boot %+v", two.MenuTimeout, two.UBoot)
	}
	why := two.Why()
	for field, line := range map[string]int{"menuTimeout": 6, "uboot.wrap": 5, "uboot.load": 6, "uboot.entry": 6, "uboot.fdt": 5} {
		if why[field].Line != line {
			t.Errorf("%s comes from %v, want line %d", field, why[field], line)
		}
	}
	if s := farm.Config.Server; s.Templates != "boot" || !s.TFTPSinglePort {
		t.Errorf("got %+v", s)
	}
}

// A next boot is in the plans of the live farm, and in nobody else's.
func TestLivePlansHaveTheNextBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "farm.yaml")
	if err := os.WriteFile(path, []byte(firmwareConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := pools.NewLive(path, &memory{})
	if err != nil {
		t.Fatal(err)
	}
	next := map[string]pools.NextBoot{}
	live.NextBoot = func(node string) pools.NextBoot { return next[node] }
	n := live.Farm().Nodes()[0]
	q := pools.Query{MAC: n.MACs[0]}
	plain := live.Resolve(q)
	next[n.Name] = "image=rescue-system"
	p := live.Resolve(q)
	if p.NextBoot != "image=rescue-system" || p.Image != "rescue-system" {
		t.Errorf("got next boot %q, image %q", p.NextBoot, p.Image)
	}
	if why := p.Why(); why["image"].Path != "API, for one boot" || why["nextBoot"].Path != "API, for one boot" {
		t.Errorf("got %v and %v", why["image"], why["nextBoot"])
	}
	next[n.Name] = pools.NextLocal
	if p := live.Resolve(q); p.NextBoot != pools.NextLocal || p.Image != plain.Image {
		t.Errorf("got next boot %q, image %q", p.NextBoot, p.Image)
	}
	delete(next, n.Name)
	if p := live.Resolve(q); p.NextBoot != "" || p.Image != plain.Image || p.Why()["image"].Line == 0 {
		t.Errorf("got next boot %q, image %q, %v", p.NextBoot, p.Image, p.Why()["image"])
	}
}
