package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	batch      = 64   // messages in one system call
	slot       = 1500 // bytes for each
	bufferSize = 16 << 20
	port       = 67
)

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// ring has the buffers of one direction.
type ring struct {
	bytes [batch][slot]byte
	iov   [batch]unix.Iovec
	msgs  [batch]mmsghdr
}

func newRing() *ring {
	r := new(ring)
	for i := range batch {
		r.iov[i].Base = &r.bytes[i][0]
		r.iov[i].SetLen(slot)
		r.msgs[i].hdr.Iov = &r.iov[i]
		r.msgs[i].hdr.SetIovlen(1)
	}
	return r
}

// socket sends to and receives from one server, many messages in a call.
type socket struct {
	fd     int
	in, to *ring
	ready  int // messages in to

	alike []byte // messages of one length, one after another
	size  int    // of one of them
}

// open binds port 67 of the relay agent, which needs privileges.
func open(relay, server netip.Addr) (*socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferSize),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, bufferSize),
		unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: relay.As4()}),
		unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: server.As4()}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("relay %s, server %s: %w", relay, server, err), unix.Close(fd))
	}
	return &socket{fd: fd, in: newRing(), to: newRing(), alike: make([]byte, 0, batch*slot)}, nil
}

func (s *socket) close() error { return unix.Close(s.fd) }

// add queues the message that fill writes. A full batch is flushed.
func (s *socket) add(fill func([]byte) int) {
	s.to.iov[s.ready].SetLen(fill(s.to.bytes[s.ready][:]))
	s.ready++
}

// addAlike queues a copy of b. All messages that are sent this way have the same length: the
// kernel takes them as one and divides it on arrival (UDP_SEGMENT), which costs less than
// one message each.
func (s *socket) addAlike(b []byte) {
	s.alike, s.size = append(s.alike, b...), len(b)
}

// flushAlike sends the messages that addAlike has queued.
func (s *socket) flushAlike() error {
	if len(s.alike) == 0 {
		return nil
	}
	oob := make([]byte, unix.CmsgSpace(2))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(oob[unix.CmsgLen(0):], uint16(s.size))
	_, err := unix.SendmsgN(s.fd, s.alike, oob, nil, 0)
	s.alike = s.alike[:0]
	switch err {
	case nil, unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ECONNREFUSED:
		return nil
	}
	return fmt.Errorf("sendmsg of segments: %w", err)
}

// flush sends the queued messages. Messages that the kernel does not take, or whose server is
// unreachable, are lost as on a wire.
func (s *socket) flush() error {
	for sent := 0; sent < s.ready; {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.to.msgs[sent])),
			uintptr(s.ready-sent), 0, 0, 0)
		switch errno {
		case 0:
			sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS, unix.ECONNREFUSED:
			sent++
		default:
			return fmt.Errorf("sendmmsg: %w", errno)
		}
	}
	s.ready = 0
	return nil
}

// receive calls each for every message that has arrived, up to a batch, and returns their
// number.
func (s *socket) receive(each func([]byte)) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.in.msgs[0])), batch, 0, 0, 0)
	switch errno {
	case 0:
	case unix.EAGAIN, unix.EINTR, unix.ECONNREFUSED:
		return 0, nil
	default:
		return 0, fmt.Errorf("recvmmsg: %w", errno)
	}
	for i := range int(n) {
		each(s.in.bytes[i][:s.in.msgs[i].n])
	}
	return int(n), nil
}

// wait returns when a message has arrived, or after d.
func (s *socket) wait(d time.Duration) error {
	t := unix.NsecToTimespec(int64(d))
	_, err := unix.Ppoll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, &t, nil)
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}
