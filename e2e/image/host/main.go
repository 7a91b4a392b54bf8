// Host is the init of a machine that has the files of its host, read-only, and runs tests
// of the host: those that need another kernel. Its arguments are a directory, a test binary
// and a regular expression for each run. Before, it loads the kernel modules of the
// environment's MODULES, which the kernel takes from its command line.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"drover/node/kmod"
	"drover/node/rootfs"
)

// top is where the files of the host are.
const top = "/mnt"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Printf("host: error: %v\n", err)
	} else {
		fmt.Println("host: done")
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // does not return
}

func run(args []string) error {
	if err := rootfs.MountKernel(); err != nil {
		return err
	}
	if err := load(append(strings.Fields(strings.ReplaceAll(os.Getenv("MODULES"), ",", " ")),
		"virtio_pci", "9pnet_virtio", "9p", "af_packet", "veth", "bonding", "8021q")...); err != nil {
		return err
	}
	if err := enter(); err != nil {
		return err
	}
	for ; len(args) >= 3; args = args[3:] {
		cmd := exec.Command(args[1], "-test.v", "-test.run", args[2])
		cmd.Dir = args[0]
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=/run/tmp", "HOME=/run/tmp", "CI=true"}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
	}
	return nil
}

// load loads kernel modules.
func load(names ...string) error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	dir, err := kmod.Dir("/", unix.ByteSliceToString(u.Release[:]))
	if err != nil {
		return err
	}
	m, err := kmod.Open(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := m.Load(name); err != nil {
			return err
		}
	}
	fmt.Printf("host: modules %s\n", strings.Join(m.Loaded(), " "))
	return nil
}

// enter makes the files of the host those of this process, with a /run that can be written.
func enter() error {
	if err := unix.Mount("host", top, "9p", unix.MS_RDONLY, "trans=virtio,version=9p2000.L,msize=1048576,cache=loose"); err != nil {
		return fmt.Errorf("mount the files of the host: %w", err)
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if err := unix.Mount(dir, filepath.Join(top, dir), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	if err := unix.Mount("tmpfs", filepath.Join(top, "run"), "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	if err := unix.Chroot(top); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return os.Mkdir("/run/tmp", 0o700)
}
