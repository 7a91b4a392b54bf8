package state

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// datasyncer makes a file durable without a thread that waits in the kernel.
// Go's runtime watches such threads with a timer of 20 µs, which at hundreds of
// fdatasyncs a second takes more of the processor than they do. The kernel's
// AIO (io_submit(2), IOCB_CMD_FDSYNC, Linux 4.18) tells an eventfd when it is
// done, and that is polled with the sockets.
//
// Where AIO is not allowed it is a plain fdatasync.
type datasyncer struct {
	fd    int
	aio   uintptr  // context; 0: none
	event *os.File // an eventfd
}

func newDatasyncer(fd int) *datasyncer {
	d := &datasyncer{fd: fd}
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return d
	}
	d.event = os.NewFile(uintptr(event), "eventfd")
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&d.aio)), 0); errno != 0 {
		d.aio = 0
	}
	return d
}

// iocb is struct iocb of linux/aio_abi.h.
type iocb struct {
	_       [2]uint64 // data, key, rw_flags
	opcode  uint16
	_       int16 // priority
	fd      uint32
	_       [4]uint64 // buffer, length, offset, reserved
	flags   uint32
	eventFD uint32
}

// ioEvent is struct io_event.
type ioEvent struct {
	_      [2]uint64 // data, object
	result int64
	_      int64
}

const (
	iocbFdsync    = 3 // IOCB_CMD_FDSYNC
	iocbTellEvent = 1 // IOCB_FLAG_RESFD
)

// sync returns when what was written before is durable.
func (d *datasyncer) sync() error {
	if d.aio == 0 {
		return unix.Fdatasync(d.fd)
	}
	err := d.submit()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EAGAIN) {
		return unix.Fdatasync(d.fd) // not on this file system, or not now
	}
	return err
}

func (d *datasyncer) submit() error {
	raw, err := d.event.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = raw.Control(func(event uintptr) {
		list := [1]*iocb{{opcode: iocbFdsync, fd: uint32(d.fd), flags: iocbTellEvent, eventFD: uint32(event)}}
		_, _, errno = unix.Syscall(unix.SYS_IO_SUBMIT, d.aio, 1, uintptr(unsafe.Pointer(&list)))
	})
	if err != nil || errno != 0 {
		return errors.Join(err, errnoOrNil(errno))
	}
	var count [8]byte
	if _, err := d.event.Read(count[:]); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	var done ioEvent
	n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, d.aio, 1, 1, uintptr(unsafe.Pointer(&done)), 0, 0)
	switch {
	case errno != 0:
		return errno
	case n != 1:
		return errors.New("io_getevents: no event")
	case done.result < 0:
		return unix.Errno(-done.result)
	}
	return nil
}

func errnoOrNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func (d *datasyncer) close() error {
	if d.aio != 0 {
		_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, d.aio, 0, 0)
	}
	if d.event != nil {
		return d.event.Close()
	}
	return nil
}
