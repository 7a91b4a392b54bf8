package dhcp6d

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of this file never wait, so they are raw ones: package dhcpd says what
// other calls cost.

// batchLength is how many packets a system call reads at most.
const batchLength = 32

// batch is the packets that one system call reads.
type batch struct {
	headers [batchLength]header
	data    [batchLength]unix.Iovec
}

// header is struct mmsghdr of recvmmsg(2).
type header struct {
	unix.Msghdr
	size uint32
}

// set makes packet i be read into a buffer.
func (b *batch) set(i int, buffer []byte) {
	b.data[i].Base = &buffer[0]
	b.data[i].SetLen(len(buffer))
	b.headers[i].Iov = &b.data[i]
	b.headers[i].SetIovlen(1)
}

func (b *batch) size(i int) int { return int(b.headers[i].size) }

// read waits for packets and reads as many as there are.
func (c *sockets) read(b *batch) (count int, err error) {
	var errno unix.Errno
	err = c.reader.Read(func(fd uintptr) bool {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(b)), batchLength, unix.MSG_DONTWAIT, 0, 0)
		count, errno = int(n), e
		return e != unix.EAGAIN
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return count, err
}

// write sends a packet. A link-local address needs no zone: the socket is bound to its
// interface.
func (c *sockets) write(packet []byte, to netip.AddrPort) error {
	name := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: networkOrder(to.Port()), Addr: to.Addr().As16()}
	data := unix.Iovec{Base: &packet[0]}
	data.SetLen(len(packet))
	h := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: unix.SizeofSockaddrInet6, Iov: &data}
	h.SetIovlen(1)
	var errno unix.Errno
	err := c.writer.Write(func(fd uintptr) bool {
		_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT)
		return errno != unix.EAGAIN
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

// networkOrder returns a port in network byte order.
func networkOrder(port uint16) uint16 {
	return binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, port))
}
