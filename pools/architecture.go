package pools

import "strings"

// FirmwareOf returns the kind of boot program that has this vendor class (option 60) and
// these architectures (option 93): that of the first one which has a loader. It returns
// "" for an operating system, and for architectures without a loader.
//
// The class need not be PXEClient: some ROMs send none. An HTTPClient loads a URL,
// whatever its number says.
func FirmwareOf(class string, archs []uint16) Firmware {
	if kind, ok := UBootClass(class); ok {
		return ubootFirmware(kind, archs)
	}
	for _, arch := range archs {
		if f := firmwareOfArch(arch); f != "" {
			return f.by(strings.HasPrefix(class, "HTTPClient"))
		}
	}
	// PXE 2.1 requires option 93. The ROMs before it ran on PCs with a BIOS alone.
	if len(archs) == 0 && strings.HasPrefix(class, "PXEClient") && !strings.Contains(class, ":Arch:") {
		return BIOS
	}
	return ""
}

// firmwareOfArch returns the firmware of a processor architecture type, or "" for a type
// without a loader: 32-bit UEFI (6, 10, 15, 18) and U-Boot (21), for example. The numbers
// are those of IANA's registry "Processor Architecture Types".
func firmwareOfArch(arch uint16) Firmware {
	switch arch {
	case 0:
		return BIOS
	case 7, 9: // RFC 4578 and its erratum name them in opposite ways; firmware sends both for x64
		return UEFIx64
	case 11:
		return UEFIarm64
	case 16:
		return UEFIx64HTTP
	case 19:
		return UEFIarm64HTTP
	case 22:
		return UBootArm64
	case 27:
		return UEFIriscv64
	case 28:
		return UEFIriscv64HTTP
	case 39:
		return UEFIloong64
	case 40:
		return UEFIloong64HTTP
	}
	return ""
}

// by returns the HTTP Boot variant of UEFI firmware if http is set, else the firmware.
func (f Firmware) by(http bool) Firmware {
	switch {
	case http && f == UEFIx64:
		return UEFIx64HTTP
	case http && f == UEFIarm64:
		return UEFIarm64HTTP
	case http && f == UEFIriscv64:
		return UEFIriscv64HTTP
	case http && f == UEFIloong64:
		return UEFIloong64HTTP
	}
	return f
}

// UBootClass returns the part of U-Boot's vendor class behind "U-Boot", in lower case:
// ".armv8". ok is false for another class. Some boards write it U-boot.
func UBootClass(class string) (kind string, ok bool) {
	if len(class) < len("U-Boot") || !strings.EqualFold(class[:len("U-Boot")], "U-Boot") {
		return "", false
	}
	return strings.ToLower(class[len("U-Boot"):]), true
}

// ubootFirmware returns the firmware of a U-Boot. Its class names the processor:
// U-Boot.armv8, .armv7, .arm; it is U-Boot alone on RISC-V and others. From 2013 to 2016
// it sent 0x100 for every board, later versions a number of their own. A U-Boot with a
// number of EFI does not run EFI programs by that request.
func ubootFirmware(kind string, archs []uint16) Firmware {
	arm64 := strings.HasPrefix(kind, ".armv8") || strings.HasPrefix(kind, ".arm64") || strings.HasPrefix(kind, ".aarch64")
	if kind != "" && !arm64 {
		return ""
	}
	for _, arch := range archs {
		switch {
		case arch == 22, arm64 && arch == 11:
			return UBootArm64
		case arch != 0 && arch != 0x100: // of another processor
			return ""
		}
	}
	if arm64 {
		return UBootArm64
	}
	return ""
}

// Arch returns the architecture type that the firmware sends; 0 for the empty Firmware.
func (f Firmware) Arch() uint16 {
	for arch := range uint16(41) {
		if f != "" && firmwareOfArch(arch) == f {
			return arch
		}
	}
	return 0
}
