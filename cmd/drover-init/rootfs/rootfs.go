// Package rootfs mounts what a node runs on: the kernel's file systems, a tmpfs for the
// image, the image with a writable layer in RAM over it, and starts the init of the
// real root.
//
// It knows nothing of where the image comes from, nor of what is written into the root
// before it starts.
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

// Where things are in the initramfs.
const (
	ImageDir = "/mnt/image" // a tmpfs: the squashfs lies here
	lowerDir = "/mnt/lower" // the squashfs, mounted
	upperDir = "/mnt/upper" // a tmpfs: what the node writes
	newRoot  = "/mnt/root"  // both together
)

// rootFree is the RAM in bytes that must be left when the image is in it: what
// a system needs to start at all.
const rootFree = 96 << 20

// IsRAMRoot reports whether dir is on a file system that an initramfs is on. It
// keeps drover-init from taking a container, where it may be process 1 too, for
// a machine of its own.
func IsRAMRoot(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false
	}
	return s.Type == unix.RAMFS_MAGIC || s.Type == unix.TMPFS_MAGIC
}

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

// MountKernel mounts the kernel's own file systems. /run is the only one of
// ours that the real system keeps; drover-init is run from it, so it allows
// programs.
func MountKernel() error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	var errs []error
	for _, m := range []mount{
		{"proc", "/proc", "proc", quiet, ""},
		{"sysfs", "/sys", "sysfs", quiet, ""},
		{"devtmpfs", "/dev", "devtmpfs", unix.MS_NOSUID, "mode=755"},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	} {
		if err := m.do(); err != nil && !errors.Is(err, unix.EBUSY) { // busy: it is mounted
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// MountImageDir makes the place that the image is fetched to. Its limit is no
// protection: FitsRAM is asked before.
func MountImageDir() error {
	return mount{"drover-image", ImageDir, "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=700,size=100%"}.do()
}

// Memory holds the figures of /proc/meminfo, in bytes.
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

// Fits returns an error when more bytes of the image would leave too little.
func (m Memory) Fits(more int64) error {
	if more+rootFree <= m.Available {
		return nil
	}
	return fmt.Errorf("the image does not fit into RAM: it needs %d MB and %d MB must stay free, but of %d MB only %d are available",
		more>>20, int64(rootFree)>>20, m.Total>>20, m.Available>>20)
}

// FitsRAM returns an error with numbers unless so many more bytes fit into RAM beside
// what a system needs to start.
func FitsRAM(more int64) error {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := readMemory(f)
	if err != nil {
		return err
	}
	return m.Fits(more)
}

// MountRoot mounts the squashfs in file and puts a writable layer on it.
func MountRoot(file string) error {
	loop, err := attachLoop(file)
	if err != nil {
		return err
	}
	defer loop.Close() // once it is mounted the mount keeps it; it goes away with that
	for _, m := range []mount{
		{loop.Name(), lowerDir, "squashfs", unix.MS_RDONLY | unix.MS_NODEV, ""},
		{"drover-root", upperDir, "tmpfs", unix.MS_NODEV, "mode=755,size=50%"},
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

// attachLoop makes file a block device, read-only, that frees itself.
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
	copy(config.Info.File_name[:len(config.Info.File_name)-1], file) // losetup shows it
	if err := unix.IoctlLoopConfigure(int(loop.Fd()), &config); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: LOOP_CONFIGURE: %w", loop.Name(), err), loop.Close())
	}
	return loop, nil
}

// EnterRoot makes newRoot the root directory, for us and for all that we start,
// and frees what the initramfs took. What is loaded of it stays usable: this
// program above all. The image's mounts keep working, out of sight.
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
	if IsRAMRoot("/") { // anything else must not be emptied
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

// empty removes what is in dir and on the same file system. Directories that
// something is mounted on, or below, stay.
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
			_ = os.Remove(name) // not empty when a mount is below
			continue
		}
		errs = append(errs, os.Remove(name))
	}
	return errors.Join(errs...)
}

// SearchPath is the PATH of all programs that drover-init starts.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// inits are the programs that may take over, in the order of preference.
var inits = []string{"/sbin/init", "/lib/systemd/systemd", "/usr/lib/systemd/systemd"}

// StartInit becomes the root's own init. It returns only when there is none.
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
