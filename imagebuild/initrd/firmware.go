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
	LeftOut bool     // the driver is not in the initrd, because it does nothing without
}

// needFirmware returns the names of the drivers that give no network at all without a file
// of firmware: their cards have none of their own. (qede is in them by its dependency qed.)
func needFirmware() []string { return []string{"bnx2", "bnx2x", "qed"} }

// choose chooses the modules: the defaults, without drivers that have no firmware in the
// image and need it, and those that the caller names.
func (a *Archive) choose() error {
	useless, err := a.useless()
	if err != nil {
		return err
	}
	s := a.modules
	want := slices.DeleteFunc(DefaultModules(a.Arch), func(name string) bool {
		file := s.byName[normalName(name)]
		return slices.ContainsFunc(append([]string{file}, s.deps[file]...), func(file string) bool {
			return slices.ContainsFunc(useless, func(m Missing) bool { return m.Driver == moduleName(file) })
		})
	})
	if err := s.choose(want, append(essentialModules(), a.Modules...)); err != nil {
		return err
	}
	a.leftOut = slices.DeleteFunc(useless, func(m Missing) bool { return s.chosen[s.byName[m.Driver]] })
	return nil
}

// useless returns the drivers of needFirmware of which the image has no firmware.
func (a *Archive) useless() (list []Missing, err error) {
	if len(a.Own.archives) > 0 {
		return nil, nil // they may have it
	}
	for _, driver := range needFirmware() {
		file := a.modules.byName[driver]
		if file == "" {
			continue
		}
		m, err := a.modules.module(file)
		if err != nil {
			return nil, err
		}
		if lost := a.missing(driver, Firmware(m.plain)); len(lost.Files) > 0 && len(lost.Files) == lost.Of {
			lost.LeftOut = true
			list = append(list, lost)
		}
	}
	return list, nil
}

// missing returns the firmware of a driver that neither the image has, nor the operator's
// own files.
func (a *Archive) missing(driver string, names []string) Missing {
	m := Missing{Driver: driver, Of: len(names)}
	for _, name := range names {
		own := slices.ContainsFunc(a.Own.files, func(f ownFile) bool { return f.path == path.Join("usr/lib/firmware", name) })
		if _, f := firmware(a.tree, a.modules.version, name); f == nil && !own {
			m.Files = append(m.Files, name)
		}
	}
	if len(m.Files) > 0 {
		id, like := a.tree.Distribution()
		m.Package = firmwarePackage(id, like, m.Files[0])
	}
	return m
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
			if n != nil && n.File.Kind == tar.TypeReg && n.File.Size <= maxModule {
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
