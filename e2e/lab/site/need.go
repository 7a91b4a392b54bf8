package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"drover/e2e/parts"
)

// loaderDir is where Debian's package ipxe keeps its network boot programs.
const loaderDir = "/usr/lib/ipxe"

// needs are what a rack and its machines take beside what package parts needs.
var needs = []parts.Need{
	{Name: "ip", Package: "iproute2"},
	{Name: "tc", Package: "iproute2"},
	{Name: "nsenter", Package: "util-linux"},
	{Name: "tcpdump", Package: "tcpdump"},
	{Name: "qemu-system-x86_64", Package: "qemu-system-x86"},
	{Name: "qemu-system-aarch64", Package: "qemu-system-arm"},
	{Name: "/usr/share/OVMF/OVMF_CODE_4M.fd", Package: "ovmf"},
	{Name: "/usr/share/OVMF/OVMF_VARS_4M.ms.fd", Package: "ovmf"},
	{Name: "/usr/share/AAVMF/AAVMF_CODE.fd", Package: "qemu-efi-aarch64"},
	{Name: "/usr/lib/u-boot/qemu_arm64/u-boot.bin", Package: "u-boot-qemu"},
	{Name: "depmod", Package: "kmod"},
	{Name: "/usr/lib/ipxe/qemu/pxe-virtio.rom", Package: "ipxe-qemu"},
	{Name: loaderDir + "/undionly.kpxe", Package: "ipxe"},
	{Name: loaderDir + "/snponly.efi", Package: "ipxe"},
}

// ErrUnable says that this host cannot run a site: not root, or not Linux with
// the programs it takes.
var ErrUnable = errors.New("cannot run a virtual rack here")

// Check tells what is missing on this host; its error is [ErrUnable].
func Check() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root", ErrUnable)
	}
	if missing := parts.Missing(needs...); missing != nil {
		return fmt.Errorf("%w: missing Debian packages: apt-get install %s", ErrUnable, strings.Join(missing, " "))
	}
	return nil
}

// Install installs the Debian packages that are missing on this host, and says
// so. It does nothing when there are none.
func Install(ctx context.Context, log io.Writer) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root", ErrUnable)
	}
	missing := parts.Missing(needs...)
	if missing == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%w: no apt-get to install %s", ErrUnable, strings.Join(missing, " "))
	}
	fmt.Fprintf(log, "installing with apt-get: %s\n", strings.Join(missing, " "))
	for _, args := range [][]string{
		{"-qq", "update"},
		append([]string{"-qq", "install", "-y", "--no-install-recommends"}, missing...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[1], err, out)
		}
	}
	return Check()
}
