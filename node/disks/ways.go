package disks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// way is a way to erase all of a disk but its table and its mark. Grade is that of NIST
// SP 800-88: purge, which no laboratory recovers, or clear, which the device itself does not
// give back.
type way struct {
	name, grade string
	zeroes      bool // zeros are read afterwards
	erase       func(ctx context.Context, e *eraser) error
}

// eraseWays returns the ways in the order in which they are tried.
func (p *Preparer) eraseWays() []way {
	if p.ways != nil {
		return p.ways
	}
	return []way{
		{"cryptographic erase", "purge", false, nvmeCryptoErase},
		{"secure discard", "purge", false, secureDiscard},
		{"zeroed by the device", "clear", true, deviceZeroes},
		{"overwritten with zeros", "clear", true, overwrite},
	}
}

// chunk is the part of a disk that is erased between two reports of progress. A disk that
// writes 50 MB in a second needs five for it.
const chunk = 256 << 20

// inChunks calls do for the parts of the disk behind the table.
func (e *eraser) inChunks(ctx context.Context, do func(at, n int64) error) error {
	for at := int64(firstPartition); at < e.end(); at += e.chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.cut != nil {
			if err := e.cut("chunk"); err != nil {
				return err
			}
		}
		n := min(e.chunk, e.end()-at)
		if err := do(at, n); err != nil {
			return err
		}
		e.progress(at + n)
	}
	return e.f.Sync()
}

// rangeIoctl is an ioctl of a range of a block device (linux/fs.h).
func (e *eraser) rangeIoctl(request uintptr, at, n int64) error {
	r := [2]uint64{uint64(at), uint64(n)}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, e.f.Fd(), request, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}

// secureDiscard makes the device erase the flash cells.
func secureDiscard(ctx context.Context, e *eraser) error {
	return e.inChunks(ctx, func(at, n int64) error { return e.rangeIoctl(unix.BLKSECDISCARD, at, n) })
}

// deviceZeroes makes the device unmap all blocks, and return zeros for them: the kernel refuses
// that where the device does not promise them. A plain discard promises nothing.
func deviceZeroes(ctx context.Context, e *eraser) error {
	return e.inChunks(ctx, func(at, n int64) error {
		return unix.Fallocate(int(e.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, n)
	})
}

// overwrite writes zeros.
func overwrite(ctx context.Context, e *eraser) error {
	var zero []byte
	return e.inChunks(ctx, func(at, n int64) error {
		err := e.rangeIoctl(unix.BLKZEROOUT, at, n)
		if !errors.Is(err, unix.ENOTTY) && !errors.Is(err, unix.EOPNOTSUPP) {
			return err
		}
		if zero == nil {
			zero = make([]byte, 1<<20)
		}
		for end := at + n; at < end; at += int64(len(zero)) {
			if _, err := e.f.WriteAt(zero[:min(int64(len(zero)), end-at)], at); err != nil {
				return err
			}
		}
		return nil
	})
}

// nvmeCommand is struct nvme_passthru_cmd of linux/nvme_ioctl.h.
type nvmeCommand struct {
	opcode, flags                   uint8
	_                               uint16
	nsid, cdw2, cdw3                uint32
	metadata, addr                  uint64
	metadataLen, dataLen            uint32
	cdw10, cdw11, cdw12, cdw13      uint32
	cdw14, cdw15, timeoutMs, result uint32
}

const (
	nvmeIoctlID       = 0x4e40     // _IO('N', 0x40): the number of the namespace
	nvmeIoctlAdminCmd = 0xc0484e41 // _IOWR('N', 0x41, struct nvme_passthru_cmd)

	nvmeIdentify = 0x06
	nvmeFormat   = 0x80

	nvmeTimeout    = 10_000  // ms
	nvmeFormatTime = 600_000 // ms
)

// nvmeCryptoErase makes the controller forget the key of a namespace (NVM Express, Format NVM
// with secure erase setting 2). The format of the blocks stays.
func nvmeCryptoErase(_ context.Context, e *eraser) error {
	fd := e.f.Fd()
	nsid, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, nvmeIoctlID, 0)
	if errno != 0 {
		return errors.New("it is no NVMe disk")
	}
	controller, err := nvmeIdentifyPage(fd, 0, 1)
	if err != nil {
		return err
	}
	all, err := nvmeIdentifyPage(fd, 0, 2) // the numbers of the active namespaces
	if err != nil {
		return err
	}
	space, err := nvmeIdentifyPage(fd, uint32(nsid), 0)
	if err != nil {
		return err
	}
	cdw10, err := nvmeFormatOf(controller, all, space)
	if err != nil {
		return err
	}
	if e.cut != nil {
		if err := e.cut("chunk"); err != nil {
			return err
		}
	}
	e.progress(0)
	c := nvmeCommand{opcode: nvmeFormat, nsid: uint32(nsid), cdw10: cdw10, timeoutMs: nvmeFormatTime}
	if err := c.run(fd); err != nil {
		return fmt.Errorf("format NVM: %w", err)
	}
	e.progress(e.disk.size)
	return nil
}

// nvmeFormatOf returns dword 10 of a Format NVM with cryptographic erase, or an error if the
// controller has none, or would erase other namespaces, too.
func nvmeFormatOf(controller, active, space []byte) (uint32, error) {
	attributes := controller[524] // FNA
	switch {
	case controller[256]&2 == 0: // OACS
		return 0, errors.New("the controller cannot format")
	case attributes&4 == 0:
		return 0, errors.New("the controller has no cryptographic erase")
	case attributes&3 != 0 && (!isZero(active[4:]) || controller[76]&2 != 0): // CMIC: other controllers have more
		return 0, errors.New("the controller would erase its other namespaces, too")
	}
	size, protection := uint32(space[26]), uint32(space[29]) // FLBAS, DPS
	return size&0xf | (size>>4&1)<<4 | (protection&7)<<5 | (protection>>3&1)<<8 | 2<<9 | (size>>5&3)<<12, nil
}

func nvmeIdentifyPage(fd uintptr, nsid, page uint32) ([]byte, error) {
	b := make([]byte, 4096)
	c := nvmeCommand{
		opcode: nvmeIdentify, nsid: nsid, cdw10: page, addr: uint64(uintptr(unsafe.Pointer(&b[0]))),
		dataLen: uint32(len(b)), timeoutMs: nvmeTimeout,
	}
	err := c.run(fd)
	runtime.KeepAlive(b)
	if err != nil {
		return nil, fmt.Errorf("identify the controller: %w", err)
	}
	return b, nil
}

// run runs an admin command. The device's own status is an error, too.
func (c *nvmeCommand) run(fd uintptr) error {
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, nvmeIoctlAdminCmd, uintptr(unsafe.Pointer(c)))
	switch {
	case errno != 0:
		return errno
	case status != 0:
		return fmt.Errorf("status %#x", status)
	}
	return nil
}
