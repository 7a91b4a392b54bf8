package buildcache

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// unbooted are directories of kernel modules that no machine needs to boot from the
// network: two thirds of the size.
var unbooted = []string{
	"sound", "drivers/gpu", "drivers/media", "drivers/staging", "drivers/iio", "drivers/infiniband", "drivers/isdn",
	"drivers/scsi/lpfc", "drivers/scsi/qla2xxx", "drivers/scsi/bfa", "drivers/scsi/aic7xxx", "drivers/scsi/qla4xxx", "drivers/usb", "drivers/md", "drivers/input", "drivers/hid", "drivers/bluetooth", "drivers/net/wireless",
	"net/bluetooth", "net/mac80211", "net/netfilter", "net/sched", "fs/btrfs", "fs/xfs", "fs/ocfs2", "fs/gfs2", "fs/ceph",
}

// kernelRecipe is the version of Kernel's procedure; it is part of the key.
const kernelRecipe = "1"

// Kernel returns a folder with Debian's signed kernel for an architecture ("amd64",
// "arm64"), as an image has it: boot/vmlinuz-VERSION and usr/lib/modules/VERSION, with
// modules.dep. Its version is that of the day on which the part was made.
func Kernel(ctx context.Context, log io.Writer, arch string) (dir string, err error) {
	log = share(log)
	p := part{kind: "kernel-" + arch, key: hashOf(append([]string{kernelRecipe}, unbooted...)...)}
	p.make = func(ctx context.Context, dir string) error {
		return timed(log, p.kind, func() error { return makeKernel(ctx, dir, arch) })
	}
	return p.path(ctx, log)
}

func makeKernel(ctx context.Context, dir, arch string) error {
	raw := filepath.Join(dir, "raw")
	if err := FetchDebian(ctx, raw, arch, "linux-image-"+arch); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(raw, "boot", "vmlinuz-*"))
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("%s: %d kernels in Debian's package, want one", arch, len(found))
	}
	version := filepath.Base(found[0])[len("vmlinuz-"):]
	modules := filepath.Join(dir, "usr", "lib", "modules", version)
	if err := os.MkdirAll(filepath.Dir(modules), 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "boot"), 0o755); err != nil {
		return err
	}
	if err := os.Rename(found[0], filepath.Join(dir, "boot", filepath.Base(found[0]))); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(raw, "lib", "modules", version), modules); err != nil { // Debian 12
		if err := os.Rename(filepath.Join(raw, "usr", "lib", "modules", version), modules); err != nil {
			return err
		}
	}
	for _, sub := range unbooted {
		if err := os.RemoveAll(filepath.Join(modules, "kernel", sub)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(raw); err != nil {
		return err
	}
	// depmod expects the modules in lib, where Debian 12 has them.
	if err := os.Symlink(filepath.Join("usr", "lib"), filepath.Join(dir, "lib")); err != nil {
		return err
	}
	_, err = output(command(ctx, "depmod", "--basedir", dir, version))
	return err
}

// Loaders returns a folder with the unpacked packages of the signed boot programs of an
// architecture (shim, GRUB), and for x86 PXELINUX, for "drover loaders install --from".
func Loaders(ctx context.Context, log io.Writer, arch string) (dir string, err error) {
	log = share(log)
	packages := []string{"shim-signed", "shim-helpers-" + arch + "-signed", "grub-efi-" + arch + "-signed"}
	if arch == "amd64" {
		packages = append(packages, "pxelinux", "syslinux-common")
	}
	p := part{kind: "signed-" + arch, key: hashOf(packages...)}
	p.make = func(ctx context.Context, dir string) error {
		return timed(log, p.kind, func() error { return FetchDebian(ctx, dir, arch, packages...) })
	}
	return p.path(ctx, log)
}
