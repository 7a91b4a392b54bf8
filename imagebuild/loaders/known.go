package loaders

import (
	"debug/pe"
	"slices"
)

// Loader is a boot loader that drover knows.
type Loader struct {
	File     string   // the name that firmware asks for
	Firmware []string // kinds of firmware by their names in package pools, or the loader that loads this one
	machine  uint16   // of its PE header; 0: not a PE file
	Package  string   // of Debian and Ubuntu
	paths    []string // relative to / or another directory; the first that exists is used
}

// known returns all loaders. In the directory of --from they may also have the names that
// firmware asks for.
func known() []Loader {
	const amd64, arm64 = pe.IMAGE_FILE_MACHINE_AMD64, pe.IMAGE_FILE_MACHINE_ARM64
	secure := func(arch string) []string { return []string{"uefi-" + arch + " with Secure Boot"} }
	return []Loader{
		{"undionly.kpxe", []string{"bios"}, 0, "ipxe",
			[]string{"usr/lib/ipxe/undionly.kpxe", "bin/undionly.kpxe"}},
		{"snponly.efi", []string{"uefi-x64", "uefi-x64-http"}, amd64, "ipxe",
			[]string{"usr/lib/ipxe/snponly.efi", "bin-x86_64-efi/snponly.efi", "x86_64-efi/snponly.efi"}},
		{"ipxe.efi", []string{"uefi-x64"}, amd64, "ipxe",
			// The second is a link to the first. Where a package was unpacked, the
			// link leads out of the directory.
			[]string{"boot/ipxe.efi", "usr/lib/ipxe/ipxe.efi", "bin-x86_64-efi/ipxe.efi", "x86_64-efi/ipxe.efi"}},
		{"snponly-arm64.efi", []string{"uefi-arm64", "uefi-arm64-http"}, arm64, "ipxe",
			[]string{"usr/lib/ipxe/snponly-arm64.efi", "bin-arm64-efi/snponly.efi", "arm64-efi/snponly.efi"}},
		{"shimx64.efi", secure("x64"), amd64, "shim-signed",
			[]string{"usr/lib/shim/shimx64.efi.signed.latest", "usr/lib/shim/shimx64.efi.signed"}},
		{"grubx64.efi", []string{"shimx64.efi"}, amd64, "grub-efi-amd64-signed",
			[]string{"usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"}},
		{"mmx64.efi", []string{"shimx64.efi"}, amd64, "shim-helpers-amd64-signed",
			[]string{"usr/lib/shim/mmx64.efi.signed", "usr/lib/shim/mmx64.efi"}},
		{"shimaa64.efi", secure("arm64"), arm64, "shim-signed",
			[]string{"usr/lib/shim/shimaa64.efi.signed.latest", "usr/lib/shim/shimaa64.efi.signed"}},
		{"grubaa64.efi", []string{"shimaa64.efi"}, arm64, "grub-efi-arm64-signed",
			[]string{"usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed"}},
		{"mmaa64.efi", []string{"shimaa64.efi"}, arm64, "shim-helpers-arm64-signed",
			[]string{"usr/lib/shim/mmaa64.efi.signed", "usr/lib/shim/mmaa64.efi"}},
		{"pxelinux.0", []string{"bios, by a rule"}, 0, "pxelinux",
			[]string{"usr/lib/PXELINUX/pxelinux.0", "bios/core/pxelinux.0"}},
		{"ldlinux.c32", []string{"pxelinux.0"}, 0, "syslinux-common",
			[]string{"usr/lib/syslinux/modules/bios/ldlinux.c32", "bios/com32/elflink/ldlinux/ldlinux.c32"}},
		{"memtest.efi", []string{"uefi-x64 boot menu"}, amd64, "memtest86+", []string{"boot/memtest86+x64.efi"}},
		{"memtest.bin", []string{"bios boot menu"}, 0, "memtest86+", []string{"boot/memtest86+x64.bin"}},
	}
}

// Find returns the loader that firmware asks for by the name file.
func Find(file string) (Loader, bool) {
	all := known()
	i := slices.IndexFunc(all, func(l Loader) bool { return l.File == file })
	if i < 0 {
		return Loader{}, false
	}
	return all[i], true
}
