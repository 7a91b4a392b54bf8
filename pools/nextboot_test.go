package pools_test

import (
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config"
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
	farm, err := config.Parse("drover.yaml", []byte(firmwareConfig))
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
