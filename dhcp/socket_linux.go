package dhcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiveBuffer holds the requests of a whole room that powers on while we are
// busy; the kernel's default drops them after some 200 packets.
const receiveBuffer = 4 << 20

// socket is a UDP socket in blocking mode. The Go runtime does not poll it:
// polled, each packet that arrives wakes a thread, though the desk reads them
// together.
type socket struct {
	fd     int
	source []byte // control message that makes the server's address the source of what is sent
}

// listenUDP opens a port on one interface. Neither SO_REUSEADDR nor
// SO_REUSEPORT is set: with them a second server would start without an error
// and take a share of the packets.
func listenUDP(device string, port int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := &socket{fd: fd}
	if err = s.setOptions(device); err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrInet4{Port: port}))
	}
	if err != nil {
		_ = s.close()
		return nil, fmt.Errorf("UDP port %d: %w", port, err)
	}
	return s, nil
}

func (s *socket) setOptions(device string) error {
	// More than net.core.rmem_max allows takes CAP_NET_ADMIN; without it the
	// kernel gives what it can.
	if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return fmt.Errorf("set receive buffer: %w", err)
		}
	}
	// See notes: what the kernel writes beside each packet.
	for _, o := range []int{unix.SO_TIMESTAMPNS, unix.SO_RXQ_OVFL} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o, 1); err != nil {
			return fmt.Errorf("set socket option %d: %w", o, err)
		}
	}
	// Before bind: the ports of different interfaces do not collide.
	if err := unix.BindToDevice(s.fd, device); err != nil {
		return fmt.Errorf("bind to interface: %w", err)
	}
	return nil
}

// stop makes reads return at once, with nothing. What is to be sent still can
// be. Linux wakes who reads even though it says that an unconnected socket
// cannot be shut down.
func (s *socket) stop() { _ = unix.Shutdown(s.fd, unix.SHUT_RD) }

func (s *socket) close() error { return unix.Close(s.fd) }

// send sends one packet.
func (s *socket) send(b []byte, to netip.AddrPort) error {
	_, err := unix.SendmsgN(s.fd, b, s.source, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, 0)
	return os.NewSyscallError("sendmsg", err)
}

// receive reads the packets that have arrived, as many as fit into the batch.
// It waits for the first, unless flags say MSG_DONTWAIT.
func (s *socket) receive(b *batch, flags int) (n int, err error) {
	for i := range b.headers {
		b.headers[i].SetControllen(controlLength)
		b.headers[i].Namelen = unix.SizeofSockaddrInet4
	}
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&b.headers[0])),
			uintptr(len(b.headers)), uintptr(flags|unix.MSG_WAITFORONE), 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return 0, os.NewSyscallError("recvmmsg", errno)
		}
	}
}

// batch is where packets are read to.
type batch struct {
	headers []header
	vectors []unix.Iovec
	control [][controlLength]byte
	senders []unix.RawSockaddrInet4
}

// header is struct mmsghdr of recvmmsg(2).
type header struct {
	unix.Msghdr
	length uint32
	_      [4]byte
}

// controlLength is room for the two notes of the kernel.
const controlLength = 64

func newBatch(n int) *batch {
	b := &batch{make([]header, n), make([]unix.Iovec, n), make([][controlLength]byte, n), make([]unix.RawSockaddrInet4, n)}
	for i := range n {
		h := &b.headers[i]
		h.Iov, h.Control, h.Name = &b.vectors[i], &b.control[i][0], (*byte)(unsafe.Pointer(&b.senders[i]))
		h.SetIovlen(1)
	}
	return b
}

// place makes buf the buffer of packet i.
func (b *batch) place(i int, buf []byte) {
	b.vectors[i].Base = &buf[0]
	b.vectors[i].SetLen(len(buf))
}

func (b *batch) length(i int) int { return int(b.headers[i].length) }

// sender is where packet i came from.
func (b *batch) sender(i int) netip.AddrPort {
	from := &b.senders[i]
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&from.Port))[:])
	return netip.AddrPortFrom(netip.AddrFrom4(from.Addr), port)
}

// notes returns what the kernel wrote beside packet i: when it arrived, the
// zero Time when it does not say, and how many packets the socket has lost so
// far for want of room, 0 for none.
func (b *batch) notes(i int) (arrived time.Time, lost uint32) {
	for rest := b.control[i][:b.headers[i].Controllen]; len(rest) > 0; {
		h, data, after, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		rest = after
		switch {
		case h.Level != unix.SOL_SOCKET:
		case h.Type == unix.SO_TIMESTAMPNS && len(data) == 16:
			arrived = time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:])))
		case h.Type == unix.SO_RXQ_OVFL && len(data) == 4:
			lost = binary.NativeEndian.Uint32(data)
		}
	}
	return arrived, lost
}
