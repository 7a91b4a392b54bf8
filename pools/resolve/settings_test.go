package resolve_test

import (
	"fmt"
	"testing"

	"drover/pools"
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

const systemConfig = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, lease: infinite}]
tags:
  all:
    hosts: {api: 10.28.0.9, admin: [10.28.0.8]}
    env: {A: "1", B: "2"}
    cron: ["@daily root a"]
    dns: [10.28.0.53]
    debugShell: on-failure
    rootPasswordHash: {fromFile: hash}
    network: {ethernets: {eno1: {mtu: 9000, dhcp4: no}, eno2: {dhcp4: no}}, renderer: networkd}
  late:
    hosts: {api: 10.28.0.10}
    env: {B: "3"}
    cron: ["@hourly root b", "@daily root a"]
    dns: {replace: [10.28.0.54]}
    debugShell: never
    network: {ethernets: {eno1: {mtu: 1500, addresses: [10.0.0.1/8]}, eno2: {dhcp4: yes}}}
pools:
  - {name: web, image: debian-12, lease: 5m, nodes: [
      {name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11},
      {name: m2, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12, tags: [late], lease: infinite}]}
`

// TestSystemSettings: later tags win key by key, lists append, and networks merge.
func TestSystemSettings(t *testing.T) {
	farm, err := config.Parse("drover.yaml", []byte(systemConfig))
	if err != nil {
		t.Fatal(err)
	}
	one := farm.Resolve(resolve.Query{MAC: mac(t, "52:54:00:00:00:01")})
	two := farm.Resolve(resolve.Query{MAC: mac(t, "52:54:00:00:00:02")})
	if one.Lease.String() != "5m" || two.Lease != pools.Infinite || two.Lease.String() != "infinite" {
		t.Errorf("leases: got %s and %s, want 5m and infinite", one.Lease, two.Lease)
	}
	if one.DebugShell != pools.ShellOnFailure || two.DebugShell != pools.ShellNever || two.RootPasswordHash.FromFile != "hash" {
		t.Errorf("got %q, %q and %v", one.DebugShell, two.DebugShell, two.RootPasswordHash)
	}
	got := fmt.Sprint(two.Hosts, two.Env, two.Cron, two.DNS, two.Network)
	want := "map[admin:[10.28.0.8] api:[10.28.0.10]] map[A:1 B:3] [@daily root a @hourly root b] [10.28.0.54] " +
		"map[ethernets:map[eno1:map[addresses:[10.0.0.1/8] dhcp4:no mtu:1500] eno2:map[dhcp4:yes]] renderer:networkd]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := fmt.Sprint(one.Network); got != "map[ethernets:map[eno1:map[dhcp4:no mtu:9000] eno2:map[dhcp4:no]] renderer:networkd]" {
		t.Errorf("the other node's network has changed: %s", got)
	}
	why := two.Why()
	for field, line := range map[string]int{"hosts.api": 13, "hosts.admin": 5, "env.B": 14, "cron[1]": 15, "dns[0]": 16, "debugShell": 17, "network": 18, "rootPasswordHash": 10, "lease": 22} {
		if why[field].Line != line {
			t.Errorf("%s comes from %v, want line %d", field, why[field], line)
		}
	}
}

const disksConfig = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
tags:
  all:
    disks: [{name: data, partitions: [{label: containerd, mount: /var/lib/containerd}]}]
  swap:
    disks: [{name: data, find: {minSize: 100GiB}, partitions: [{label: s, filesystem: swap, size: 8G}, {label: containerd, mount: /var/lib/containerd}]}]
  zram: {zram: 50%}
  strict: {kubeletArgs: {fail-swap-on: "true"}}
pools:
  - {name: web, image: debian-12, nodes: [
      {name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11},
      {name: m2, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12, tags: [swap]},
      {name: m3, macs: ["52:54:00:00:00:03"], ip: 10.28.0.13, tags: [zram]},
      {name: m4, macs: ["52:54:00:00:00:04"], ip: 10.28.0.14, tags: [zram, strict]}]}
`

// TestDisks: a later tag replaces a disk by its name, and the kubelet of a node with swap is
// told to run, unless the operator says what it does.
func TestDisks(t *testing.T) {
	farm, err := config.Parse("drover.yaml", []byte(disksConfig))
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		disk, failOn string
		line         int
	}{
		{"the first empty disk: containerd ext4 /var/lib/containerd", "", 0},
		{"minSize 100GiB: s swap 8G, containerd ext4 /var/lib/containerd", "false", 7},
		{"the first empty disk: containerd ext4 /var/lib/containerd", "false", 8},
		{"the first empty disk: containerd ext4 /var/lib/containerd", "true", 9},
	} {
		p := farm.Resolve(resolve.Query{MAC: mac(t, fmt.Sprintf("52:54:00:00:00:0%d", i+1))})
		if len(p.Disks) != 1 || p.Disks[0].String() != tt.disk || p.KubeletArgs["fail-swap-on"] != tt.failOn || p.Why()["kubeletArgs.fail-swap-on"].Line != tt.line {
			t.Errorf("m%d: got disks %v, kubelet %q of %v, want %+v", i+1, p.Disks, p.KubeletArgs, p.Why()["kubeletArgs.fail-swap-on"], tt)
		}
	}
}
