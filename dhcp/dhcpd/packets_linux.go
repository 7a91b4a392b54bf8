package dhcpd

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of this file never wait, so that Go's runtime need not know of
// them (RawSyscall). Any other call wakes the monitor thread of a runtime that was
// idle, which then wakes every 20 µs until the runtime is idle again: with a few
// packets at a time that was half of the server's processor time. Package net and
// golang.org/x/net make no raw calls.

// batchLength is how many packets a system call reads at most.
const batchLength = 64

// batch is the packets that one system call reads.
type batch struct {
	headers [batchLength]header
	data    [batchLength]unix.Iovec
	names   [batchLength]unix.RawSockaddrInet4
	control [batchLength][controlSize]byte
}

// header is struct mmsghdr of recvmmsg(2).
type header struct {
	unix.Msghdr
	size uint32
}

// controlSize is that of a control message with four bytes.
const controlSize = unix.SizeofCmsghdr + 8

// set makes packet i be read into a buffer.
func (b *batch) set(i int, buffer []byte) {
	b.data[i].Base = &buffer[0]
	b.data[i].SetLen(len(buffer))
}

func (b *batch) size(i int) int { return int(b.headers[i].size) }

// from returns the sender of packet i.
func (b *batch) from(i int) netip.AddrPort {
	n := &b.names[i]
	return netip.AddrPortFrom(netip.AddrFrom4(n.Addr), networkOrder(n.Port))
}

// forHost reports whether frame i was sent to this host or to all, by the interface with
// the index. The name of a frame's sender is a sockaddr_ll (packet(7)), with the index in
// bytes 4 to 7 and the type of the packet in byte 10.
func (b *batch) forHost(i, index int) bool {
	t := b.names[i].Zero[2]
	return int(binary.NativeEndian.Uint32(b.names[i].Addr[:])) == index && (t == unix.PACKET_HOST || t == unix.PACKET_BROADCAST)
}

// networkOrder converts a port to or from network byte order.
func networkOrder(port uint16) uint16 {
	return binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, port))
}

// dropped returns the count of packets that the socket has lost for lack of room,
// which SO_RXQ_OVFL adds to packet i when there are any. It is the only control
// message of the socket.
func (b *batch) dropped(i int) (count uint32, ok bool) {
	if b.headers[i].Controllen < unix.SizeofCmsghdr+4 {
		return 0, false
	}
	return binary.NativeEndian.Uint32(b.control[i][unix.SizeofCmsghdr:]), true
}

// read waits for packets and reads as many as there are.
func (s *socket) read(b *batch) (count int, err error) {
	for i := range b.headers {
		h := &b.headers[i].Msghdr
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.names[i])), unix.SizeofSockaddrInet4
		h.Iov, h.Control = &b.data[i], &b.control[i][0]
		h.SetIovlen(1)
		h.SetControllen(controlSize)
	}
	var errno unix.Errno
	err = s.raw.Read(func(fd uintptr) bool {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(b)), batchLength, unix.MSG_DONTWAIT, 0, 0)
		count, errno = int(n), e
		return e != unix.EAGAIN
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return count, err
}

// write sends a packet.
func (s *socket) write(packet []byte, to netip.AddrPort) error {
	name := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: networkOrder(to.Port()), Addr: to.Addr().As4()}
	data := unix.Iovec{Base: &packet[0]}
	data.SetLen(len(packet))
	h := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: unix.SizeofSockaddrInet4, Iov: &data}
	h.SetIovlen(1)
	if len(s.source) > 0 {
		h.Control = &s.source[0]
		h.SetControllen(len(s.source))
	}
	var errno unix.Errno
	err := s.raw.Write(func(fd uintptr) bool {
		_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT)
		return errno != unix.EAGAIN
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}
