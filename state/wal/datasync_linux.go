package wal

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// datasync makes files durable while no thread waits in the kernel. Go's runtime
// watches such a thread with a timer of 20 µs and gives its processor to another
// thread: with a lease for each fdatasync(2), that takes a third of the processor time
// of a DHCP exchange. The kernel's AIO (io_submit(2), IOCB_CMD_FDSYNC, since Linux
// 4.18) signals an eventfd instead, which the runtime polls together with the sockets.
// The calls here do not wait: they are raw, or each would wake the runtime's monitor
// thread (see drover/dhcp/dhcpd).
//
// Where AIO is not allowed, it is fdatasync(2).
type datasync struct {
	context uintptr
	eventFD int
	event   *os.File // nil: there is no AIO
	raw     syscall.RawConn
}

// iocb is struct iocb of linux/aio_abi.h, and ioEvent struct io_event.
type (
	iocb struct {
		_       [2]uint64
		opcode  uint16
		_       int16
		fd      uint32
		_       [4]uint64
		flags   uint32
		eventFD uint32
	}
	ioEvent struct {
		_      [2]uint64
		result int64
		_      int64
	}
)

// open prepares AIO, if the kernel allows it.
func (d *datasync) open() {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return
	}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&d.context)), 0); errno != 0 {
		_ = unix.Close(fd)
		return
	}
	d.eventFD, d.event = fd, os.NewFile(uintptr(fd), "eventfd")
	d.raw, _ = d.event.SyscallConn() // fails for a nil File alone
}

func (d *datasync) close() {
	if d.event != nil {
		_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, d.context, 0, 0)
		_ = d.event.Close()
	}
}

// sync returns once the data of a file is durable. One goroutine calls it.
func (d *datasync) sync(f *os.File) error {
	const fdsync, signal = 3, 1 // IOCB_CMD_FDSYNC, IOCB_FLAG_RESFD
	if d.event == nil {
		return fdatasync(f)
	}
	list := [1]*iocb{{opcode: fdsync, fd: uint32(f.Fd()), flags: signal, eventFD: uint32(d.eventFD)}}
	if _, _, errno := unix.RawSyscall(unix.SYS_IO_SUBMIT, d.context, 1, uintptr(unsafe.Pointer(&list))); errno != 0 {
		return fdatasync(f) // not on this file system, or not now
	}
	var count [8]byte
	var done ioEvent // it is there: no call here waits
	err := d.raw.Read(func(fd uintptr) bool {
		_, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&count)), uintptr(len(count)))
		return errno != unix.EAGAIN
	})
	n, _, errno := unix.RawSyscall6(unix.SYS_IO_GETEVENTS, d.context, 1, 1, uintptr(unsafe.Pointer(&done)), 0, 0)
	switch {
	case err != nil || errno != 0 || n != 1:
		return errors.Join(errors.New("fdatasync by AIO has no result"), err)
	case done.result < 0:
		return os.NewSyscallError("fdatasync", unix.Errno(-done.result))
	}
	return nil
}
