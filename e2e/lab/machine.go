package lab

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Firmware is what a machine starts with.
type Firmware string

// The firmwares.
const (
	BIOS Firmware = "bios" // SeaBIOS; the network card's ROM is iPXE
	UEFI Firmware = "uefi" // OVMF, its own PXE stack
)

// Where Debian's package ovmf keeps the firmware.
const (
	ovmfCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	ovmfVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// Machine is a server to be. It boots from the network alone.
type Machine struct {
	Name     string   // names its files
	Firmware Firmware // default BIOS
	NICs     []NIC    // in the order of their slots
	Memory   int      // MB; default 1280
	CPUs     int      // default 1
	CPU      string   // QEMU's name of its kind; default: a plain x86-64 of 2006
}

// NIC is a network card (virtio).
type NIC struct {
	MAC  string
	Boot bool // the firmware boots from it
	Dark bool // has a link, but to a segment where nobody answers
}

// files are the files of one machine that QEMU opens.
type files struct {
	disk string   // empty disk
	vars string   // UEFI: the machine's own copy of the firmware's variables
	taps []string // one for each NIC
}

// filesIn returns where the machine's files are.
func (m Machine) filesIn(dir string) files {
	return files{
		disk: filepath.Join(dir, m.Name+".disk"),
		vars: filepath.Join(dir, m.Name+".vars"),
	}
}

// args returns QEMU's command line.
func (m Machine) args(f files) []string {
	memory, cpus := m.Memory, m.CPUs
	if memory == 0 {
		memory = 1280
	}
	if cpus == 0 {
		cpus = 1
	}
	args := []string{
		"-name", m.Name,
		"-uuid", m.uuid(),
		// tb-size bounds the cache of translated code, 1 GB by default.
		"-accel", "tcg,thread=multi,tb-size=512",
		"-smp", fmt.Sprint(cpus), "-m", fmt.Sprint(memory),
		// -nographic and not "-display none": only then SeaBIOS and its
		// option ROMs write to the serial line.
		"-nographic", "-monitor", "none", "-serial", "stdio",
		// Only what has a bootindex may boot; a machine that finds nothing
		// starts over, as servers do.
		"-boot", "strict=on,reboot-timeout=5000",
		"-device", "virtio-rng-pci",
		"-drive", "if=none,id=disk,format=raw,file=" + f.disk,
		"-device", "virtio-blk-pci,drive=disk",
	}
	if m.CPU != "" {
		args = append(args, "-cpu", m.CPU)
	}
	switch m.Firmware {
	case UEFI:
		args = append(args, "-machine", "q35",
			"-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+ovmfCode,
			"-drive", "if=pflash,unit=1,format=raw,file="+f.vars)
	default:
		args = append(args, "-machine", "pc")
	}
	for i, nic := range m.NICs {
		dev := fmt.Sprintf("virtio-net-pci,netdev=net%d,mac=%s", i, nic.MAC)
		if nic.Boot {
			dev += ",bootindex=1"
		}
		if m.Firmware == UEFI {
			dev += ",romfile=" // no iPXE in the card: OVMF's own network stack
		}
		args = append(args,
			"-netdev", fmt.Sprintf("tap,id=net%d,ifname=%s,script=no,downscript=no", i, f.taps[i]),
			"-device", dev)
	}
	return args
}

// uuid returns an SMBIOS UUID that differs by machine: firmware sends it as
// option 97, systemd makes the machine-id from it.
func (m Machine) uuid() string {
	node := "000000000000"
	if len(m.NICs) > 0 {
		node = strings.ReplaceAll(m.NICs[0].MAC, ":", "")
	}
	return "d20fe700-0000-4000-8000-" + node
}
