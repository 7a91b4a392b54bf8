package initrd

import (
	"archive/tar"
	"path"
	"slices"
	"strings"

	"drover/imagebuild/rootfs"
)

// Missing is a network card's driver whose firmware the image lacks.
type Missing struct {
	Driver  string
	Files   []string // that the driver may load and the image does not have
	Of      int      // all files that the driver may load
	Package string   // has them, in the distribution of the image
}

// firmwareDirs returns the directories in which a kernel looks for firmware, in its order
// (drivers/base/firmware_loader/main.c).
func firmwareDirs(version string) []string {
	var dirs []string
	for _, sub := range []string{"updates/" + version, "updates", version, ""} {
		dirs = append(dirs, path.Join("usr/lib/firmware", sub), path.Join("lib/firmware", sub))
	}
	return dirs
}

// firmware returns a firmware file of the image and its path in the initrd, or nil.
func firmware(t *rootfs.Tree, version, name string) (string, *rootfs.File) {
	elems, err := rootfs.CleanPath(name)
	if err != nil {
		return "", nil
	}
	for _, dir := range firmwareDirs(version) {
		for _, ext := range []string{"", ".xz", ".zst"} {
			file := path.Join(dir, path.Join(elems...)) + ext
			n := t.Lookup(file)
			if n != nil && n.Kind == tar.TypeReg && n.Size <= maxModule {
				return "usr/" + strings.TrimPrefix(file, "usr/"), n.File
			}
		}
	}
	return "", nil
}

// isNICDriver reports whether a module's path is that of a driver of network cards.
func isNICDriver(file string) bool { return strings.Contains("/"+file, "/drivers/net/") }

// firmwarePackage returns the package with the firmware of a driver in a distribution,
// given the first of its files.
func firmwarePackage(id, like, file string) string {
	family := append([]string{id}, strings.Fields(like)...)
	vendor, _, _ := strings.Cut(file, "/")
	is := func(names ...string) bool {
		return slices.ContainsFunc(family, func(f string) bool { return slices.Contains(names, f) })
	}
	switch {
	case is("ubuntu"):
		return "linux-firmware"
	case is("debian"):
		return debianFirmware(vendor, file) + " (non-free-firmware)"
	case is("suse", "opensuse", "sles"):
		return suseFirmware(vendor)
	case is("fedora", "rhel", "centos") && vendor == "netronome":
		return "netronome-firmware"
	case is("fedora") && (vendor == "qed" || vendor == "rtl_nic"):
		return map[string]string{"qed": "qed-firmware", "rtl_nic": "realtek-firmware"}[vendor]
	case is("arch") && vendor == "netronome":
		return "linux-firmware-nfp"
	case is("arch") && (vendor == "bnx2x" || vendor == "qed"):
		return map[string]string{"bnx2x": "linux-firmware-bnx2x", "qed": "linux-firmware-qlogic"}[vendor]
	}
	return "linux-firmware"
}

// debianFirmware returns the package of Debian 12 and 13 for a vendor's directory.
func debianFirmware(vendor, file string) string {
	switch {
	case vendor == "bnx2", vendor == "bnx2x":
		return "firmware-" + vendor
	case strings.HasPrefix(file, "bnx2x-"):
		return "firmware-bnx2x"
	case vendor == "qed", vendor == "qlogic":
		return "firmware-qlogic"
	case file == "phanfw.bin":
		return "firmware-netxen"
	case vendor == "netronome":
		return "firmware-netronome"
	case vendor == "rtl_nic":
		return "firmware-realtek"
	case vendor == "liquidio", vendor == "cavium":
		return "firmware-cavium"
	case vendor == "intel":
		return "firmware-intel-misc, or firmware-misc-nonfree in Debian 12"
	}
	return "firmware-misc-nonfree"
}

// suseFirmware returns the package of openSUSE for a vendor's directory.
func suseFirmware(vendor string) string {
	switch vendor {
	case "bnx2", "bnx2x":
		return "kernel-firmware-bnx2"
	case "qed", "qlogic":
		return "kernel-firmware-qlogic"
	case "netronome":
		return "kernel-firmware-nfp"
	case "rtl_nic":
		return "kernel-firmware-realtek"
	case "cxgb3", "cxgb4":
		return "kernel-firmware-chelsio"
	case "intel":
		return "kernel-firmware-intel"
	case "liquidio":
		return "kernel-firmware-liquidio"
	case "mellanox":
		return "kernel-firmware-mellanox"
	}
	return "kernel-firmware-network"
}
