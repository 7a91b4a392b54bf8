package disks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"drover/node/program"
	"drover/node/rootfs"
	"drover/pools"
)

// mkfsLimit is the time limit for making one file system. Large disks are discarded first.
const mkfsLimit = 5 * time.Minute

// Linux is the running system. File systems are made by the programs of the image, which
// is the root.
type Linux struct {
	Say func(format string, args ...any) // gets the output of the programs
}

// Mkfs runs mkfs.KIND of the image.
func (l Linux) Mkfs(ctx context.Context, kind pools.Filesystem, label, device string) error {
	if kind == pools.Swap {
		return writeSwap(device)
	}
	name := "mkfs." + string(kind)
	path := findProgram(name)
	if path == "" {
		return fmt.Errorf("the image has no %s (package %s)", name, map[pools.Filesystem]string{pools.Ext4: "e2fsprogs", pools.XFS: "xfsprogs", pools.Btrfs: "btrfs-progs"}[kind])
	}
	// -q has a meaning for all of them; none asks a question about an empty partition.
	args := map[pools.Filesystem][]string{
		pools.Ext4:  {"-q", "-F", "-L", label, device},
		pools.XFS:   {"-q", "-f", "-L", label, device},
		pools.Btrfs: {"-q", "-f", "-L", label, device},
	}[kind]
	ctx, cancel := context.WithTimeoutCause(ctx, mkfsLimit, fmt.Errorf("not done after %v", mkfsLimit))
	defer cancel()
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"PATH=" + rootfs.SearchPath}
	last := ""
	err := program.Run(ctx, cmd, func(line string) {
		last = line
		l.Say("%s: %s", name, line)
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, device, err, last)
	}
	return nil
}

// findProgram returns the path of a program of the image; "" without one.
func findProgram(name string) string {
	for dir := range strings.SplitSeq(rootfs.SearchPath, ":") {
		path := filepath.Join(dir, name)
		if s, err := os.Stat(path); err == nil && s.Mode().IsRegular() && s.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Reread makes the kernel read the partition table.
func (Linux) Reread(device string) error {
	f, err := os.Open(device)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlSetInt(int(f.Fd()), unix.BLKRRPART, 0)
}

// flags are the mount options that are flags of mount(2). The rest goes to the file system.
var flags = map[string]uintptr{
	"defaults": 0, "rw": 0, "nofail": 0, "auto": 0,
	"ro": unix.MS_RDONLY, "noatime": unix.MS_NOATIME, "relatime": unix.MS_RELATIME, "nodiratime": unix.MS_NODIRATIME, "lazytime": unix.MS_LAZYTIME,
	"nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC, "sync": unix.MS_SYNCHRONOUS,
}

// Mount makes the directory, and mounts.
func (Linux) Mount(kind, source, target, options string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	var flag uintptr
	var data []string
	for o := range strings.SplitSeq(options, ",") {
		if f, ok := flags[o]; ok {
			flag |= f
		} else if o != "" && !strings.HasPrefix(o, "x-") {
			data = append(data, o)
		}
	}
	if kind == "bind" {
		kind, flag = "", flag|unix.MS_BIND
	}
	if err := unix.Mount(source, target, kind, flag, strings.Join(data, ",")); err != nil {
		return fmt.Errorf("mount %s %s on %s: %w", kind, source, target, err)
	}
	return nil
}

// SwapOn is swapon(2). A negative priority is the kernel's choice.
func (Linux) SwapOn(device string, priority int) error {
	path, err := unix.BytePtrFromString(device)
	if err != nil {
		return err
	}
	const prefer = 0x8000 // SWAP_FLAG_PREFER
	flags := uintptr(0)
	if priority >= 0 {
		flags = prefer | uintptr(priority)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(path)), flags, 0); errno != 0 {
		return errno
	}
	return nil
}

// writeSwap writes the header of a swap area (linux/swap.h), with pages of this machine.
func writeSwap(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, 2)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.WriteAt(swapHeader(size, int64(os.Getpagesize())), 0)
	return errors.Join(err, f.Sync(), f.Close())
}

func swapHeader(size, page int64) []byte {
	b := make([]byte, page)
	binary.NativeEndian.PutUint32(b[1024:], 1)
	binary.NativeEndian.PutUint32(b[1028:], uint32(min(size/page-1, 1<<32-1)))
	copy(b[page-10:], "SWAPSPACE2")
	return b
}

// Zram makes compressed swap in RAM. Whole is the RAM that a percentage is of.
func (l Linux) Zram(size pools.Size, whole int64) (int64, error) {
	n, err := size.Of(whole)
	if err != nil {
		return 0, err
	}
	const dir, device = "/sys/block/zram0/", "/dev/zram0"
	if _, err := os.Stat(dir); err != nil {
		return 0, errors.New("the kernel has no zram, and the image has no module for it")
	}
	if b, err := os.ReadFile(dir + "disksize"); err != nil || string(bytes.TrimSpace(b)) != "0" {
		return 0, errors.Join(errors.New("zram0 is in use"), err)
	}
	if err := os.WriteFile(dir+"disksize", []byte(strconv.FormatInt(n, 10)), 0); err != nil {
		return 0, err
	}
	if err := writeSwap(device); err != nil {
		return 0, err
	}
	return n, l.SwapOn(device, 100)
}
