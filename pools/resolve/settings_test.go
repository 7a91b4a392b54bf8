package resolve_test

import (
	"testing"

	"drover/pools/config"
	"drover/pools/resolve"
)

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
	one := farm.Resolve(resolve.Query{MAC: mac(t, "52:54:00:00:00:01")})
	if load, entry := one.UBoot.Addresses(); one.MenuTimeout != 10 || !one.UBoot.Wrapped() || load != 0x80000 || entry != load || one.UBoot.FDT != "m400.dtb" {
		t.Errorf("m1: got menu %d, U-Boot %+v", one.MenuTimeout, one.UBoot)
	}
	two := farm.Resolve(resolve.Query{MAC: mac(t, "52:54:00:00:00:02")})
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
