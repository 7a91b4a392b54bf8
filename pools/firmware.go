package pools

import (
	"fmt"
	"slices"
	"strings"
)

// Firmware is the kind of boot program that sends a request. It selects the loader.
// The empty Firmware is a plain DHCP client: an operating system, or a tool that does
// not boot; and a boot program of an architecture for which there is no loader.
type Firmware string

// The kinds of firmware that drover has loaders for, see [FirmwareOf].
const (
	BIOS            Firmware = "bios"                  // PC BIOS with a PXE ROM
	UEFIx64         Firmware = "uefi-x64"              // UEFI PXE, x86-64
	UEFIx64HTTP     Firmware = "uefi-x64-http"         // UEFI HTTP Boot, x86-64
	UEFIarm64       Firmware = "uefi-arm64"            // UEFI PXE, AArch64
	UEFIarm64HTTP   Firmware = "uefi-arm64-http"       // UEFI HTTP Boot, AArch64
	UBootArm64      Firmware = "uboot-arm64"           // U-Boot on AArch64 (HPE m400)
	UEFIriscv64     Firmware = "uefi-riscv64"          // UEFI PXE, RISC-V of 64 bits
	UEFIriscv64HTTP Firmware = "uefi-riscv64-http"     // UEFI HTTP Boot, RISC-V of 64 bits
	UEFIloong64     Firmware = "uefi-loongarch64"      // UEFI PXE, LoongArch of 64 bits
	UEFIloong64HTTP Firmware = "uefi-loongarch64-http" // UEFI HTTP Boot, LoongArch of 64 bits
	RaspberryPi     Firmware = "raspberry-pi"          // boot loader of a Raspberry Pi 3, 4 or 5, without UEFI and U-Boot
)

// Firmwares lists every kind, in the order in which help texts show them.
var Firmwares = []Firmware{
	BIOS, UEFIx64, UEFIx64HTTP, UEFIarm64, UEFIarm64HTTP, UBootArm64,
	UEFIriscv64, UEFIriscv64HTTP, UEFIloong64, UEFIloong64HTTP, RaspberryPi,
}

// ParseFirmware reads the name of a firmware, as the flag --arch accepts it.
func ParseFirmware(s string) (Firmware, error) {
	if f := Firmware(s); slices.Contains(Firmwares, f) {
		return f, nil
	}
	names := make([]string, len(Firmwares))
	for i, f := range Firmwares {
		names[i] = string(f)
	}
	return "", fmt.Errorf("unknown firmware %q (one of %s)", s, strings.Join(names, ", "))
}

// HTTP reports whether the firmware fetches its loader by HTTP instead of TFTP.
func (f Firmware) HTTP() bool { return strings.HasSuffix(string(f), "-http") }

// Loader returns the file of the loader for this firmware, in the loaders directory;
// "" when there is none.
//
// UEFI gets snponly.efi, the iPXE that uses only the network card it was loaded from.
// ipxe.efi would try all cards in order and wait for DHCP on each.
func (f Firmware) Loader() string { return loaders[f] }

var loaders = map[Firmware]string{
	BIOS:    "undionly.kpxe",
	UEFIx64: "snponly.efi", UEFIx64HTTP: "snponly.efi",
	UEFIarm64: "snponly-arm64.efi", UEFIarm64HTTP: "snponly-arm64.efi",
	UEFIriscv64: "snponly-riscv64.efi", UEFIriscv64HTTP: "snponly-riscv64.efi",
	UEFIloong64: "snponly-loong64.efi", UEFIloong64HTTP: "snponly-loong64.efi",
	UBootArm64:  "boot.scr.uimg",
	RaspberryPi: "raspberry-pi/start4.elf", // asks for names of its own, whatever the answer says
}
