// Package rootfs mounts the file systems of a node: the kernel's own, a tmpfs for the
// image, and the image with a writable layer in RAM over it. Then it starts the init of
// that root.
//
// It knows nothing of the source of the image, nor of the node's configuration.
package rootfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount points in the initramfs.
const (
	ImageDir = "/mnt/image" // a tmpfs with the squashfs
	lowerDir = "/mnt/lower" // the squashfs, mounted
	upperDir = "/mnt/upper" // a tmpfs with the node's writes
	newRoot  = "/mnt/root"  // the overlay of both
)

// rootFree is the RAM in bytes that must be free beside the image: a system needs it to
// start.
const rootFree = 96 << 20

// IsRAMRoot reports whether dir is on the file system of an initramfs. It protects a
// container, in which drover-init may be process 1 too.
func IsRAMRoot(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false
	}
	return s.Type == unix.RAMFS_MAGIC || s.Type == unix.TMPFS_MAGIC
}

// joinFree is the RAM in bytes that must be available beside the image, when the config of
// the node arrives, for systemd, containerd, kubeadm and the kubelet.
const joinFree = 350 << 20

type mount struct {
	source, target, fs string
	flags              uintptr
	data               string
}

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.fs, m.flags, m.data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.fs, m.target, err)
	}
	return nil
}

// MountKernel mounts /proc, /sys, /dev and /run. The real system keeps /run; the agent is
// started from it, so that it is not mounted noexec.
func MountKernel() error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	var errs []error
	for _, m := range []mount{
		{"proc", "/proc", "proc", quiet, ""},
		{"sysfs", "/sys", "sysfs", quiet, ""},
		{"devtmpfs", "/dev", "devtmpfs", unix.MS_NOSUID, "mode=755"},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755,size=20%"}, // as systemd's own
	} {
		if err := m.do(); err != nil && !errors.Is(err, unix.EBUSY) { // busy: mounted already
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// MountImageDir mounts the tmpfs for the image. Its size limit does not protect the RAM;
// [FitsRAM] does.
func MountImageDir() error {
	return mount{"drover-image", ImageDir, "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=700,size=100%"}.do()
}

// Memory has the figures of /proc/meminfo, in bytes.
type Memory struct {
	Total, Available int64
}

func readMemory(r io.Reader) (Memory, error) {
	var m Memory
	s := bufio.NewScanner(r)
	for s.Scan() {
		w := strings.Fields(s.Text())
		if len(w) != 3 || w[2] != "kB" {
			continue
		}
		n, err := strconv.ParseInt(w[1], 10, 53)
		if err != nil {
			continue
		}
		switch w[0] {
		case "MemTotal:":
			m.Total = n << 10
		case "MemAvailable:":
			m.Available = n << 10
		}
	}
	if m.Total == 0 || m.Available == 0 {
		return m, errors.Join(errors.New("/proc/meminfo does not tell MemTotal and MemAvailable"), s.Err())
	}
	return m, nil
}

// Fits returns an error if so many more bytes of the image would leave too little RAM.
func (m Memory) Fits(more int64) error {
	if more+rootFree <= m.Available {
		return nil
	}
	return fmt.Errorf("the image does not fit into RAM: it needs %d MB and %d MB must stay free, but of %d MB only %d are available",
		more>>20, int64(rootFree)>>20, m.Total>>20, m.Available>>20)
}

// Joins returns an error if too little RAM is available for a node that joins a cluster.
func (m Memory) Joins() error {
	if m.Available >= joinFree {
		return nil
	}
	return fmt.Errorf("too little RAM to join a cluster: systemd, containerd and the kubelet need about %d MB, but beside the image only %d of %d MB are available",
		int64(joinFree)>>20, m.Available>>20, m.Total>>20)
}

// RAM returns the memory of this machine.
func RAM() (Memory, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return Memory{}, err
	}
	defer f.Close()
	return readMemory(f)
}

// FitsRAM returns an error with numbers unless so many more bytes fit into RAM beside
// what a system needs to start.
func FitsRAM(more int64) error {
	m, err := RAM()
	if err != nil {
		return err
	}
	return m.Fits(more)
}

// MountRoot mounts the squashfs in file, with a writable layer over it. The layer may take
// half of the RAM that is left beside the image.
func MountRoot(file string) error {
	m, err := RAM()
	if err != nil {
		return err
	}
	loop, err := attachLoop(file)
	if err != nil {
		return err
	}
	defer loop.Close() // the mount keeps the device, and frees it at its end
	for _, m := range []mount{
		{loop.Name(), lowerDir, "squashfs", unix.MS_RDONLY | unix.MS_NODEV, ""},
		{"drover-root", upperDir, "tmpfs", unix.MS_NODEV, fmt.Sprintf("mode=755,size=%d", m.Available/2)},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	for _, d := range []string{"data", "work"} {
		if err := os.Mkdir(filepath.Join(upperDir, d), 0o755); err != nil {
			return err
		}
	}
	return mount{"drover-root", newRoot, "overlay", 0,
		"lowerdir=" + lowerDir + ",upperdir=" + upperDir + "/data,workdir=" + upperDir + "/work"}.do()
}

// attachLoop makes file a read-only block device, which is freed at its last close.
func attachLoop(file string) (*os.File, error) {
	backing, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer backing.Close() // the device holds its own reference
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("the kernel has no loop devices: %w", err)
	}
	defer control.Close()
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, fmt.Errorf("free loop device: %w", err)
	}
	loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	config := unix.LoopConfig{Fd: uint32(backing.Fd())}
	config.Info.Flags = unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR
	copy(config.Info.File_name[:len(config.Info.File_name)-1], file) // for losetup
	if err := unix.IoctlLoopConfigure(int(loop.Fd()), &config); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: LOOP_CONFIGURE: %w", loop.Name(), err), loop.Close())
	}
	return loop, nil
}

// EnterRoot makes newRoot the root directory of this process and its children, and frees
// the memory of the initramfs. Loaded programs, such as this one, and the image's
// mounts stay usable.
func EnterRoot() error {
	for _, d := range []string{"/proc", "/sys", "/dev", "/run"} {
		target := filepath.Join(newRoot, d)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(d, target, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s to the root image: %w", d, err)
		}
	}
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if IsRAMRoot("/") { // no other file system may be emptied
		if err := empty("/"); err != nil {
			return fmt.Errorf("free the initramfs: %w", err)
		}
	}
	// pivot_root(2) does not work on a rootfs; this is what switch_root(8) does.
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root image to /: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return os.Chdir("/")
}

// empty removes the content of dir on its own file system. Mount points, and directories
// above them, stay.
func empty(dir string) error {
	var own unix.Stat_t
	if err := unix.Lstat(dir, &own); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		var s unix.Stat_t
		if err := unix.Lstat(name, &s); err != nil {
			errs = append(errs, err)
			continue
		}
		if s.Dev != own.Dev {
			continue
		}
		if e.IsDir() {
			if err := empty(name); err != nil {
				errs = append(errs, err)
				continue
			}
			_ = os.Remove(name) // fails above a mount point
			continue
		}
		errs = append(errs, os.Remove(name))
	}
	return errors.Join(errs...)
}

// SearchPath is the PATH of all programs that drover-init starts.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// inits are the paths of the root's init, in the order of preference.
var inits = []string{"/sbin/init", "/lib/systemd/systemd", "/usr/lib/systemd/systemd"}

// StartInit replaces this process by the root's own init. It returns only with an error:
// there is none.
func StartInit(args []string) error {
	var errs []error
	for _, path := range inits {
		err := unix.Exec(path, append([]string{path}, args...), []string{
			"PATH=" + SearchPath, "HOME=/", "TERM=linux",
		})
		errs = append(errs, fmt.Errorf("%s: %w", path, err))
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return fmt.Errorf("the image's init does not start: %w", errors.Join(errs...))
}
