package tftp

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	receiveBatch = 64
	sendBatch    = 64
	receiveSize  = 2048 // a request has at most 512 bytes: RFC 2347
)

// batch is memory that recvmmsg(2) and sendmmsg(2) work on. They save a call
// for each packet when many clients are served, or a window is sent.
type batch struct {
	headers  []unix.Mmsghdr
	vectors  []unix.Iovec
	names    []unix.RawSockaddrInet6 // IPv4's is shorter
	controls [][controlSize]byte
	buffers  []byte
	six      bool
}

// controlSize has room for an Inet6Pktinfo (20 bytes) and a UDP_SEGMENT (2),
// each behind a header of 16 and aligned.
const controlSize = 64

func newBatch(n int, six bool) *batch {
	b := &batch{
		headers: make([]unix.Mmsghdr, n), vectors: make([]unix.Iovec, n), names: make([]unix.RawSockaddrInet6, n),
		controls: make([][controlSize]byte, n), six: six,
	}
	for i := range n {
		h := &b.headers[i].Hdr
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Iov = &b.vectors[i]
		h.SetIovlen(1)
		h.Control = &b.controls[i][0]
	}
	return b
}

// receive fills in and returns how many. The flags are those of recvmmsg(2).
func (b *batch) receive(fd int, in []message, flags uintptr) (int, unix.Errno) {
	if b.buffers == nil {
		b.buffers = make([]byte, len(b.headers)*receiveSize)
	}
	n := min(len(in), len(b.headers))
	for i := range n {
		b.vectors[i].Base = &b.buffers[i*receiveSize]
		b.vectors[i].SetLen(receiveSize)
		b.headers[i].Hdr.Namelen = unix.SizeofSockaddrInet6
		b.headers[i].Hdr.SetControllen(controlSize)
	}
	got, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])), uintptr(n), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	for i := range int(got) {
		h := &b.headers[i]
		in[i].data = b.buffers[i*receiveSize:][:h.Len]
		in[i].peer = peerOf(&b.names[i])
		in[i].at = placeOf(b.controls[i][:h.Hdr.Controllen])
	}
	return int(got), 0
}

// send sends out from the first message on and returns how many the kernel
// took, and why it took no more.
func (b *batch) send(fd int, out []message) (int, unix.Errno) {
	n := min(len(out), len(b.headers))
	for i := range n {
		h, m := &b.headers[i].Hdr, &out[i]
		b.vectors[i].Base = unsafe.SliceData(m.data)
		b.vectors[i].SetLen(len(m.data))
		h.Namelen = b.name(i, m.peer)
		h.SetControllen(b.control(i, m))
	}
	sent, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])), uintptr(n), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sent), 0
}

// name writes the address that a message goes to.
func (b *batch) name(i int, peer netip.AddrPort) uint32 {
	if b.six {
		sa := &b.names[i]
		*sa = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: netOrder(peer.Port()), Addr: peer.Addr().As16()}
		if zone := peer.Addr().Zone(); zone != "" {
			scope, _ := strconv.ParseUint(zone, 10, 32) // as peerOf wrote it
			sa.Scope_id = uint32(scope)
		}
		return unix.SizeofSockaddrInet6
	}
	sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&b.names[i]))
	*sa = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: netOrder(peer.Port()), Addr: peer.Addr().As4()}
	return unix.SizeofSockaddrInet4
}

// control writes where a message leaves from, and into packets of what size
// the kernel cuts it.
func (b *batch) control(i int, m *message) int {
	c := b.controls[i][:0]
	if b.six {
		info := unix.Inet6Pktinfo{Addr: m.at.addr.As16()}
		if m.at.addr.IsLinkLocalUnicast() {
			info.Ifindex = uint32(m.at.ifi)
		}
		c = appendControl(c, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unsafe.Slice((*byte)(unsafe.Pointer(&info)), unix.SizeofInet6Pktinfo))
	} else if m.at.addr.Is4() {
		info := unix.Inet4Pktinfo{Spec_dst: m.at.addr.As4()}
		c = appendControl(c, unix.IPPROTO_IP, unix.IP_PKTINFO, unsafe.Slice((*byte)(unsafe.Pointer(&info)), unix.SizeofInet4Pktinfo))
	}
	if m.several() {
		var each [2]byte
		binary.NativeEndian.PutUint16(each[:], uint16(m.each))
		c = appendControl(c, unix.IPPROTO_UDP, unix.UDP_SEGMENT, each[:])
	}
	return len(c)
}

// appendControl appends a control message (see cmsg(3)).
func appendControl(c []byte, level, typ int32, data []byte) []byte {
	start := len(c)
	c = c[:start+unix.CmsgSpace(len(data))]
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[start]))
	h.Level, h.Type = level, typ
	h.SetLen(unix.CmsgLen(len(data)))
	copy(c[start+unix.CmsgLen(0):], data)
	return c
}

// peerOf reads an address. An IPv6 one that needs its interface has the
// interface's number as its zone.
func peerOf(sa *unix.RawSockaddrInet6) netip.AddrPort {
	if sa.Family == unix.AF_INET {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(four.Addr), netOrder(four.Port))
	}
	addr := netip.AddrFrom16(sa.Addr)
	if sa.Scope_id != 0 {
		addr = addr.WithZone(strconv.FormatUint(uint64(sa.Scope_id), 10))
	}
	return netip.AddrPortFrom(addr, netOrder(sa.Port))
}

// placeOf finds in control messages which address a packet was sent to.
func placeOf(control []byte) (p place) {
	for len(control) >= unix.CmsgLen(0) {
		h, data, rest, err := unix.ParseOneSocketControlMessage(control)
		switch {
		case err != nil:
			return p
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0]))
			return place{netip.AddrFrom4(info.Spec_dst), int(info.Ifindex)}
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			info := (*unix.Inet6Pktinfo)(unsafe.Pointer(&data[0]))
			return place{netip.AddrFrom16(info.Addr), int(info.Ifindex)}
		}
		control = rest
	}
	return p
}

// netOrder turns a port from host to network order, or back.
func netOrder(port uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], port)
	return binary.NativeEndian.Uint16(b[:])
}
