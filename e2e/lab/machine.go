package lab

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Firmware is what a machine starts with.
type Firmware string

// The firmwares.
const (
	BIOS       Firmware = "bios"        // SeaBIOS; the network card's ROM is iPXE
	UEFI       Firmware = "uefi"        // OVMF, its own PXE stack
	SecureBoot Firmware = "uefi-secure" // OVMF that starts only what Microsoft's key signed, as servers come
	UEFIarm64  Firmware = "uefi-arm64"  // AAVMF, its own PXE stack
	UBootArm64 Firmware = "uboot-arm64" // U-Boot; takes its MAC from an e1000 card only
)

// platform is what QEMU makes of a firmware.
type platform struct {
	program string   // of QEMU
	args    []string // what the machine is
	code    string   // UEFI: its program
	vars    string   // UEFI: its variables, when it has never started
}

// Where Debian's packages ovmf, qemu-efi-aarch64 and u-boot-qemu keep firmware.
const (
	ovmf  = "/usr/share/OVMF/OVMF_"
	aavmf = "/usr/share/AAVMF/AAVMF_"
	uboot = "/usr/lib/u-boot/qemu_arm64/u-boot.bin"
)

// platform returns what a firmware runs on. SMM keeps the variables of Secure
// Boot out of the reach of operating systems; the firmware insists on it.
func (f Firmware) platform() platform {
	const x86, arm = "qemu-system-x86_64", "qemu-system-aarch64"
	virt := []string{"-machine", "virt", "-cpu", "cortex-a57"}
	switch f {
	case UEFI:
		return platform{x86, []string{"-machine", "q35"}, ovmf + "CODE_4M.fd", ovmf + "VARS_4M.fd"}
	case SecureBoot:
		return platform{x86, []string{"-machine", "q35,smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on",
			"-global", "ICH9-LPC.disable_s3=1"}, ovmf + "CODE_4M.secboot.fd", ovmf + "VARS_4M.ms.fd"}
	case UEFIarm64:
		return platform{arm, virt, aavmf + "CODE.fd", aavmf + "VARS.fd"}
	case UBootArm64:
		return platform{program: arm, args: append(virt, "-bios", uboot)}
	}
	return platform{program: x86, args: []string{"-machine", "pc"}}
}

// AMD64 reports whether the firmware is of an x86-64 machine.
func (f Firmware) AMD64() bool { return f.platform().program == "qemu-system-x86_64" }

// Machine is a server to be. It boots from the network alone.
type Machine struct {
	Name     string   // names its files
	Firmware Firmware // default BIOS
	HTTPBoot bool     // UEFI: by HTTP Boot alone, not by PXE
	IPv6     bool     // UEFI: by PXE over IPv6 alone
	NICs     []NIC    // in the order of their slots, and of booting
	Medium   string   // file of a boot medium in a USB drive, a CD when its name ends in .iso; it boots before all cards
	Disks    []Disk   // disks beside the first disk, which is empty
	Memory   int      // MB; default 1280
	CPUs     int      // default 1
	CPU      string   // QEMU's name of its kind; default: a plain x86-64 of 2006
	Kernel   *Kernel  // what QEMU starts instead of the firmware; default: nothing
	Clock    string   // what its clock shows at power-on, "2001-02-03T04:05:06"; default: UTC
	DMI      []string // structures as QEMU's -smbios takes them: type=3,serial=CH1
}

// Disk is a disk.
type Disk struct {
	File   string // its content
	Serial string
	Bus    Bus // default NVMe
	Rate   int // bytes that it writes in a second; default: no limit
}

// Bus is how a disk is connected.
type Bus string

// The buses beside NVMe.
const (
	SCSI   Bus = "scsi"
	Virtio Bus = "virtio"
)

// Kernel is a kernel that QEMU starts, without firmware and network.
type Kernel struct {
	Image     string // its file
	Initrd    string
	Arguments string
	HostFiles bool // the machine has the files of this host, read-only, by 9P under the name host
}

// args returns the part of QEMU's command line that has the kernel.
func (k *Kernel) args() []string {
	if k == nil {
		return nil
	}
	args := []string{"-kernel", k.Image, "-initrd", k.Initrd, "-append", k.Arguments}
	if k.HostFiles {
		args = append(args, "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap")
	}
	return args
}

// NIC is a network card.
type NIC struct {
	MAC   string
	Model string // of QEMU's; default virtio-net-pci
	Boot  bool   // the firmware boots from it
	Dark  bool   // has a link, but to a segment where nobody answers
	Wire  string // bridge of the rack that its cable leads to; default [Bridge]
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
	args := []string{
		"-name", m.Name,
		"-uuid", m.uuid(),
		// tb-size bounds the cache of translated code, 1 GB by default.
		"-accel", "tcg,thread=multi,tb-size=512",
		"-smp", fmt.Sprint(cmp.Or(m.CPUs, 1)), "-m", fmt.Sprint(cmp.Or(m.Memory, 1280)),
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
	p := m.Firmware.platform()
	args = append(args, p.args...)
	if m.CPU != "" {
		args = append(args, "-cpu", m.CPU)
	}
	if m.Clock != "" {
		args = append(args, "-rtc", "base="+m.Clock)
	}
	for _, d := range m.DMI {
		args = append(args, "-smbios", d)
	}
	if p.code != "" {
		args = append(args,
			"-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+p.code,
			"-drive", "if=pflash,unit=1,format=raw,file="+f.vars)
	}
	if m.IPv6 {
		args = append(args, "-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n")
	}
	if m.HTTPBoot {
		for _, v := range []string{"IPv4", "IPv6"} {
			args = append(args, "-fw_cfg", "name=opt/org.tianocore/"+v+"PXESupport,string=n")
		}
	}
	return slices.Concat(args, m.Kernel.args(), m.drive(), m.disks(), m.cards(f.taps))
}

// drive returns the part of QEMU's command line that has the boot medium. An
// iLO's virtual media are USB drives too.
func (m Machine) drive() []string {
	if m.Medium == "" {
		return nil
	}
	media := "disk"
	if strings.HasSuffix(m.Medium, ".iso") {
		media = "cdrom"
	}
	return []string{
		"-drive", "if=none,id=medium,format=raw,readonly=on,media=" + media + ",file=" + m.Medium,
		"-device", "qemu-xhci", "-device", "usb-storage,drive=medium,bootindex=1",
	}
}

// disks returns the part of QEMU's command line that has the disks.
func (m Machine) disks() (args []string) {
	if slices.ContainsFunc(m.Disks, func(d Disk) bool { return d.Bus == SCSI }) {
		args = append(args, "-device", "virtio-scsi-pci")
	}
	for i, d := range m.Disks {
		device := map[Bus]string{"": "nvme", SCSI: "scsi-hd", Virtio: "virtio-blk-pci"}[d.Bus]
		drive := fmt.Sprintf("if=none,id=d%d,format=raw,file=%s", i, d.File)
		if d.Rate > 0 {
			drive += fmt.Sprintf(",throttling.bps-write=%d", d.Rate)
		}
		args = append(args, "-drive", drive, "-device", fmt.Sprintf("%s,drive=d%d,serial=%s", device, i, d.Serial))
	}
	return args
}

// cards returns the part of QEMU's command line that has the network cards.
func (m Machine) cards(taps []string) (args []string) {
	order := 0
	if m.Medium != "" {
		order++
	}
	for i, nic := range m.NICs {
		dev := fmt.Sprintf("%s,netdev=net%d,mac=%s", cmp.Or(nic.Model, "virtio-net-pci"), i, nic.MAC)
		if nic.Boot {
			order++
			dev += fmt.Sprintf(",bootindex=%d", order)
		}
		if m.Firmware != BIOS && m.Firmware != "" {
			dev += ",romfile=" // no iPXE in the card: the firmware's own network stack
		}
		args = append(args,
			"-netdev", fmt.Sprintf("tap,id=net%d,ifname=%s,script=no,downscript=no", i, taps[i]),
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
