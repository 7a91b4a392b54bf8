// Package packetio reads and sends packets for the servers of this folder by system calls
// that never wait, and has the checksum of the packets that they build.
//
// Go's runtime need not know of calls that never wait (RawSyscall). Any other call wakes
// the monitor thread of a runtime that was idle, which then wakes every 20 µs until the
// runtime is idle again: with a few packets at a time that was half of the processor time
// of a DHCP server. Package net and golang.org/x/net make no raw calls.
package packetio

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Header is struct mmsghdr of recvmmsg(2).
type Header struct {
	unix.Msghdr
	Size uint32 // of the packet, in bytes
}

// StatusSize is the room for the control message of AskForStatus.
const StatusSize = unix.SizeofCmsghdr + 8

// AskForStatus makes each read of a socket for frames say whether the checksum of the packet is
// there: a control message with a struct tpacket_auxdata (packet(7)), of which the first word is enough.
func AskForStatus(c syscall.RawConn) error {
	var refused error
	err := c.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_AUXDATA, 1) })
	if err == nil {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("status of frames: %w", err)
	}
	return nil
}

// Summed reports whether the packet has its checksum. One of this host, or of a virtual machine on
// it, has none yet: the card would compute it. The socket is one of AskForStatus.
func (h *Header) Summed() bool {
	if h.Controllen < unix.SizeofCmsghdr+4 {
		return true
	}
	status := unsafe.Slice(h.Control, StatusSize)[unix.SizeofCmsghdr:]
	return binary.NativeEndian.Uint32(status)&unix.TP_STATUS_CSUMNOTREADY == 0
}

// Receive waits for packets, reads as many as there are headers and packets, and returns
// their number.
func Receive(c syscall.RawConn, headers []Header) (count int, err error) {
	var errno unix.Errno
	err = c.Read(func(fd uintptr) bool {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&headers[0])), uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
		count, errno = int(n), e
		return e != unix.EAGAIN
	})
	return count, first(err, errno)
}

// Send sends a packet to the address in name, a sockaddr of some family. The control
// messages may be empty.
func Send(c syscall.RawConn, packet, name, control []byte) error {
	data := unix.Iovec{Base: &packet[0]}
	data.SetLen(len(packet))
	h := unix.Msghdr{Name: &name[0], Namelen: uint32(len(name)), Iov: &data}
	h.SetIovlen(1)
	if len(control) > 0 {
		h.Control = &control[0]
		h.SetControllen(len(control))
	}
	var errno unix.Errno
	err := c.Write(func(fd uintptr) bool {
		_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT)
		return errno != unix.EAGAIN
	})
	return first(err, errno)
}

// first returns err, or the error of the system call.
func first(err error, errno unix.Errno) error {
	if err == nil && errno != 0 {
		return errno
	}
	return err
}

// NetworkOrder converts a port to or from network byte order.
func NetworkOrder(port uint16) uint16 {
	return binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, port))
}

// SetReceiveBuffer sets the size of a receive buffer in bytes. More than
// net.core.rmem_max takes CAP_NET_ADMIN; without it the kernel gives what it can.
func SetReceiveBuffer(c syscall.RawConn, size int) error {
	var refused error
	err := c.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) != nil {
			refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, size)
		}
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("set receive buffer: %w", err)
	}
	return nil
}
