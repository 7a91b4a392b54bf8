package buildcache

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// The files of [Initramfs].
const (
	DefaultInitramfs = "default" // by mkinitramfs with Debian's settings
	LiveInitramfs    = "live"    // the same with live-boot, which fetches a root over HTTP
)

// Initramfs makes an initramfs with Debian's mkinitramfs, for the kernel whose modules
// are in the squashfs with this digest. The benchmarks compare drover's initrd with it.
// It returns a folder with [DefaultInitramfs] and [LiveInitramfs].
func Initramfs(ctx context.Context, log io.Writer, squashfs, digest, version string) (dir string, err error) {
	log = share(log)
	if _, err := exec.LookPath("unsquashfs"); err != nil {
		return "", fmt.Errorf("initramfs: %w (please run: apt-get install squashfs-tools)", err)
	}
	p := part{kind: "initramfs", key: hashOf(digest, version, initramfsPackages, initramfsScript, linkDown), make: func(ctx context.Context, dir string) error {
		return timed(log, "initramfs", func() error { return makeInitramfs(ctx, dir, squashfs, version) })
	}}
	return p.path(ctx, log)
}

// initramfsPackages are installed before mkinitramfs runs. The node image has the microcode,
// too, and drover puts it into its initrd.
const initramfsPackages = "initramfs-tools,zstd,busybox,usr-is-merged,intel-microcode,amd64-microcode"

// initramfsScript runs with the new root, its modules, the kernel's version and
// the directory for what it makes. zstd is what mkinitramfs compresses with by
// default, if it is there; the kernel's config tells it that the kernel can read
// that. busybox is what live-boot fetches with.
const initramfsScript = `set -eu
root=$1 modules=$2 version=$3 out=$4
mkdir -p "$root/usr/lib/modules" "$root/boot"
cp -a "$modules/usr/lib/modules/$version" "$root/usr/lib/modules/"
cp "$root/usr/lib/modules/$version/config" "$root/boot/config-$version"
chroot "$root" mkinitramfs -o /boot/default "$version"
DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install --yes --no-install-recommends live-boot live-boot-initramfs-tools
install -D -m 755 "$out/link-down" "$root/etc/initramfs-tools/scripts/live-bottom/zz-link-down"
chroot "$root" mkinitramfs -o /boot/live "$version"
cp "$root/boot/default" "$root/boot/live" "$out/"
`

// linkDown is a script that live-boot needs for a root with systemd-networkd: networkd
// does not configure a card that is up already, and the boot would wait for two minutes.
// The script also copies a bench-up.service of the initramfs into the root.
const linkDown = `#!/bin/sh
case "${1:-}" in prereqs) exit 0 ;; esac
for card in /sys/class/net/e*; do
	ip addr flush dev "${card##*/}"
	ip link set dev "${card##*/}" down
done
if [ -e /bench-up.service ]; then
	cp /bench-up.service /root/etc/systemd/system/
	mkdir -p /root/etc/systemd/system/multi-user.target.wants
	ln -s ../bench-up.service /root/etc/systemd/system/multi-user.target.wants/
fi
`

func makeInitramfs(ctx context.Context, dir, squashfs, version string) error {
	temp, err := os.MkdirTemp(dir, "work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	modules := filepath.Join(temp, "modules")
	if err := run(command(ctx, "unsquashfs", "-no-progress", "-dest", modules, squashfs, "usr/lib/modules/"+version), io.Discard); err != nil {
		return err
	}
	script := filepath.Join(temp, "hook.sh")
	for name, text := range map[string]string{script: initramfsScript, filepath.Join(dir, "link-down"): linkDown} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			return err
		}
	}
	return run(command(ctx, "mmdebstrap", "--mode=root", "--variant=minbase",
		"--components=main,non-free-firmware", "--include="+initramfsPackages, "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
		fmt.Sprintf("--customize-hook=sh %q \"$1\" %q %q %q", script, modules, version, dir),
		"bookworm", filepath.Join(temp, "root")), io.Discard)
}
