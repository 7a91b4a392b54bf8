package dhcp6d

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"drover/dhcp/packetio"
)

// batchLength is how many packets a system call reads at most.
const batchLength = 32

// batch is the packets that one system call reads.
type batch struct {
	headers [batchLength]packetio.Header
	data    [batchLength]unix.Iovec
	control [batchLength][packetio.StatusSize]byte
}

// set makes packet i be read into a buffer.
func (b *batch) set(i int, buffer []byte) {
	b.data[i].Base = &buffer[0]
	b.data[i].SetLen(len(buffer))
	b.headers[i].Iov = &b.data[i]
	b.headers[i].SetIovlen(1)
}

func (b *batch) size(i int) int { return int(b.headers[i].Size) }

// summed reports whether packet i has its checksum.
func (b *batch) summed(i int) bool { return b.headers[i].Summed() }

// read waits for packets and reads as many as there are.
func (c *sockets) read(b *batch) (int, error) {
	for i := range b.headers {
		b.headers[i].Control = &b.control[i][0]
		b.headers[i].SetControllen(packetio.StatusSize)
	}
	return packetio.Receive(c.reader, b.headers[:])
}

// write sends a packet. A link-local address needs no zone: the socket is bound to its
// interface.
func (c *sockets) write(packet []byte, to netip.AddrPort) error {
	name := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: packetio.NetworkOrder(to.Port()), Addr: to.Addr().As16()}
	return packetio.Send(c.writer, packet, unsafe.Slice((*byte)(unsafe.Pointer(&name)), unix.SizeofSockaddrInet6), nil)
}
