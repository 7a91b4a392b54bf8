package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"drover/e2e/lab"
)

// Where Debian keeps the firmware.
const (
	ovmf      = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	ovmfVars  = "/usr/share/OVMF/OVMF_VARS_4M.fd"
	aavmf     = "/usr/share/AAVMF/AAVMF_CODE.fd"
	aavmfVars = "/usr/share/AAVMF/AAVMF_VARS.fd"
	uboot     = "/usr/lib/u-boot/qemu_arm64/u-boot.bin"
)

// uuid is the SMBIOS UUID of all machines; firmware sends it as option 97.
const uuid = "33383034-3135-435a-3230-373036544e31"

// pc is a machine with SeaBIOS, which starts the ROM of the NIC: iPXE.
func pc(ctx context.Context, rack *lab.Rack, c client) (string, error) {
	return powerOn(ctx, rack, c, "qemu-system-x86_64", "", "-machine", "pc", "-device", virtio(c))
}

// uefi is a machine with OVMF. romfile= takes iPXE out of the NIC, so that the
// firmware uses its own network stack.
func uefi(ctx context.Context, rack *lab.Rack, c client) (string, error) {
	return powerOn(ctx, rack, c, "qemu-system-x86_64", ovmfVars, "-machine", "q35", "-device", virtio(c)+",romfile=",
		"-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+ovmf)
}

// arm is an arm64 machine with AAVMF.
func arm(ctx context.Context, rack *lab.Rack, c client) (string, error) {
	return powerOn(ctx, rack, c, "qemu-system-aarch64", aavmfVars, "-machine", "virt", "-cpu", "cortex-a57",
		"-device", virtio(c)+",romfile=", "-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+aavmf)
}

// armUBoot is an arm64 machine with U-Boot. Its driver for virtio uses a MAC of
// its own making on the wire; the one for e1000 uses the card's.
func armUBoot(ctx context.Context, rack *lab.Rack, c client) (string, error) {
	return powerOn(ctx, rack, c, "qemu-system-aarch64", "", "-machine", "virt", "-cpu", "cortex-a57",
		"-device", "e1000,netdev=net,mac="+c.mac+",romfile=", "-bios", uboot)
}

func virtio(c client) string { return "virtio-net-pci,netdev=net,bootindex=1,mac=" + c.mac }

// powerOn starts a machine with one NIC. vars is the firmware's store of
// variables, of which it gets a copy.
func powerOn(ctx context.Context, rack *lab.Rack, c client, qemu, vars string, args ...string) (string, error) {
	args = append(args, c.args...)
	how := fmt.Sprintf("started with: %s -uuid %s %s", qemu, uuid, strings.Join(args, " "))
	for _, step := range [][]string{
		{"tuntap", "add", "dev", "tap", "mode", "tap"},
		{"link", "set", "tap", "master", lab.Bridge, "up"},
	} {
		if _, err := rack.Run(ctx, "ip", step...); err != nil {
			return "", err
		}
	}
	args = append(args, "-uuid", uuid, "-accel", "tcg,thread=multi,tb-size=512", "-m", "512",
		"-nographic", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-device", "virtio-rng-pci",
		"-netdev", "tap,id=net,ifname=tap,script=no,downscript=no")
	if vars != "" {
		own := filepath.Join(rack.Dir, "vars")
		if err := lab.CopyFile(own, vars); err != nil {
			return "", err
		}
		args = append(args, "-drive", "if=pflash,unit=1,format=raw,file="+own)
	}
	_, err := rack.Start("client", exec.Command(qemu, args...))
	return how, err
}
