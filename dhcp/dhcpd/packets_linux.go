package dhcpd

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"drover/dhcp/packetio"
)

// batchLength is how many packets a system call reads at most.
const batchLength = 64

// batch is the packets that one system call reads.
type batch struct {
	headers [batchLength]packetio.Header
	data    [batchLength]unix.Iovec
	names   [batchLength]unix.RawSockaddrInet4
	control [batchLength][packetio.StatusSize]byte // of a message with four bytes
}

// set makes packet i be read into a buffer.
func (b *batch) set(i int, buffer []byte) {
	b.data[i].Base = &buffer[0]
	b.data[i].SetLen(len(buffer))
}

func (b *batch) size(i int) int { return int(b.headers[i].Size) }

// from returns the sender of packet i.
func (b *batch) from(i int) netip.AddrPort {
	n := &b.names[i]
	return netip.AddrPortFrom(netip.AddrFrom4(n.Addr), packetio.NetworkOrder(n.Port))
}

// forHost reports whether frame i was sent to this host or to all, by the interface with
// the index. The name of a frame's sender is a sockaddr_ll (packet(7)), with the index in
// bytes 4 to 7 and the type of the packet in byte 10.
func (b *batch) forHost(i, index int) bool {
	t := b.names[i].Zero[2]
	return int(binary.NativeEndian.Uint32(b.names[i].Addr[:])) == index && (t == unix.PACKET_HOST || t == unix.PACKET_BROADCAST)
}

// summed reports whether frame i has its checksum.
func (b *batch) summed(i int) bool { return b.headers[i].Summed() }

// dropped returns the count of packets that the socket has lost for lack of room,
// which SO_RXQ_OVFL adds to packet i when there are any. It is the only control
// message of a UDP socket. The observer has the status of frames there.
func (b *batch) dropped(i int) (count uint32, ok bool) {
	if b.headers[i].Controllen < unix.SizeofCmsghdr+4 {
		return 0, false
	}
	return binary.NativeEndian.Uint32(b.control[i][unix.SizeofCmsghdr:]), true
}

// read waits for packets and reads as many as there are.
func (s *socket) read(b *batch) (int, error) {
	for i := range b.headers {
		h := &b.headers[i].Msghdr
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.names[i])), unix.SizeofSockaddrInet4
		h.Iov, h.Control = &b.data[i], &b.control[i][0]
		h.SetIovlen(1)
		h.SetControllen(packetio.StatusSize)
	}
	return packetio.Receive(s.raw, b.headers[:])
}

// write sends a packet.
func (s *socket) write(packet []byte, to netip.AddrPort) error {
	name := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: packetio.NetworkOrder(to.Port()), Addr: to.Addr().As4()}
	return packetio.Send(s.raw, packet, unsafe.Slice((*byte)(unsafe.Pointer(&name)), unix.SizeofSockaddrInet4), s.source)
}
