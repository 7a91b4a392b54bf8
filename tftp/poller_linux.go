package tftp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epoller is the [poller] of the kernel's sockets: epoll(7). The sockets are not known to
// the Go runtime's poller: one client without a window takes turns with the server, and
// the way through that poller would take as long as the rest of a turn.
type epoller struct {
	listener *udpSocket
	inside   func(func() error) error // runs a function that opens a socket; nil: as it is

	epoll, wake int // file descriptors; wake is readable after Close
	events      [batchSize]unix.EpollEvent
	busy        bool // several sockets had packets the last time
	used        atomic.Bool
	closed      atomic.Bool
}

func newPoller(listener *udpSocket, inside func(func() error) error) (*epoller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &epoller{listener: listener, inside: inside, epoll: epoll, wake: wake}
	if err := p.add(wake); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (p *epoller) add(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &event))
}

// wait has the sockets with packets. Go's runtime need not know of a call that does not
// wait: it is tried first where there are many clients.
func (p *epoller) wait(ready []int32) (count int, err error) {
	p.used.Store(true)
	events := p.events[:min(len(ready), len(p.events))]
	n := 0
	if p.busy {
		r, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
		if errno == 0 {
			n = int(r)
		}
	}
	if n == 0 {
		if n, err = unix.EpollWait(p.epoll, events, -1); errors.Is(err, unix.EINTR) {
			n, err = 0, nil // Go's runtime interrupts its threads by signals
		}
	}
	if p.closed.Load() {
		p.release()
		return 0, net.ErrClosed
	}
	if err != nil {
		return 0, os.NewSyscallError("epoll_wait", err)
	}
	p.busy = n > 1
	for i := range events[:n] {
		ready[i] = events[i].Fd
	}
	return n, nil
}

// Close wakes wait, which then closes the descriptors.
func (p *epoller) Close() error {
	switch {
	case p.closed.Swap(true):
		return nil
	case !p.used.Load():
		p.release()
		return nil
	}
	_, err := unix.Write(p.wake, binary.NativeEndian.AppendUint64(nil, 1))
	return os.NewSyscallError("write", err)
}

func (p *epoller) release() {
	unix.Close(p.epoll)
	unix.Close(p.wake)
}

// sendBuffer is the send buffer of a transfer's socket, in bytes: for a window of the
// largest size. The kernel doubles it, and reduces it to its limits.
const sendBuffer = 1 << 20

func (p *epoller) open(o origin, client netip.AddrPort) (c channel, err error) {
	open := func() error {
		c, err = p.openSocket(o, client)
		return err
	}
	if p.inside != nil {
		return c, p.inside(open)
	}
	return c, open()
}

func (p *epoller) openSocket(o origin, client netip.AddrPort) (channel, error) {
	family := unix.AF_INET
	if p.listener.six {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := p.attach(fd, o, client); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &udpChannel{fd: fd, shared: p.listener.shared}, nil
}

// attach binds a socket to the address that a client asked, at a port of the kernel's
// choice, and connects it to the client.
func (p *epoller) attach(fd int, o origin, client netip.AddrPort) error {
	port := 0
	if p.listener.shared {
		port = p.listener.LocalAddr().(*net.UDPAddr).Port
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	if err := p.ignorePathMTU(fd); err != nil {
		return err
	}
	if err := unix.Bind(fd, p.sockaddr(o.addr, port, o.link)); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if err := unix.Connect(fd, p.sockaddr(client.Addr(), int(client.Port()), o.link)); err != nil {
		return os.NewSyscallError("connect", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	return p.add(fd)
}

// ignorePathMTU lets a socket send packets of the size of the interface, without DF, which routers
// on the way may cut. The kernel learns a smaller MTU of a path from ICMP, also of other
// connections, for ten minutes, and would refuse several blocks in one message (EMSGSIZE) each time
// that they are sent again. Where ICMP is filtered, it never learns it, and packets with DF are lost.
// No router cuts packets of IPv6: there the kernel has to, for each block alone.
func (p *epoller) ignorePathMTU(fd int) error {
	if p.listener.six {
		return nil
	}
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_INTERFACE))
}

// sockaddr returns an address for the kernel. An IPv6 address of one link needs the
// interface.
func (p *epoller) sockaddr(addr netip.Addr, port, link int) unix.Sockaddr {
	if !p.listener.six {
		return &unix.SockaddrInet4{Port: port, Addr: addr.As4()}
	}
	a := &unix.SockaddrInet6{Port: port, Addr: addr.As16()}
	if addr.IsLinkLocalUnicast() {
		a.ZoneId = uint32(link)
	}
	return a
}

// udpChannel is a connected UDP socket. A shared one has the port of the listener: between
// its bind and its connect the kernel gives it packets of all hosts.
type udpChannel struct {
	fd     int
	shared bool
}

func (c *udpChannel) id() int32 { return int32(c.fd) }

// receive and send make system calls that do not wait, so that Go's runtime need not know
// of them (RawSyscall).
func (c *udpChannel) receive(b []byte) (int, netip.AddrPort, error) {
	if c.shared {
		n, from, err := unix.Recvfrom(c.fd, b, unix.MSG_DONTWAIT)
		return n, sender(from), err
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, netip.AddrPort{}, errno
	}
	return int(n), netip.AddrPort{}, nil
}

// sender is the address of a packet's sender, without the zone of IPv6.
func sender(from unix.Sockaddr) netip.AddrPort {
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// leave connects the socket to itself: the kernel then has no packet for it.
func (c *udpChannel) leave() {
	if local, err := unix.Getsockname(c.fd); err == nil {
		_ = unix.Connect(c.fd, local) // if it fails, a request may be lost, and the client repeats it
	}
}

func (c *udpChannel) send(b []byte, size int) error {
	if len(b) > size {
		return c.sendCut(b, size)
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// sendCut has the kernel cut b into packets of size bytes: UDP_SEGMENT, see udp(7). A
// window takes some time, so Go's runtime knows of this call.
func (c *udpChannel) sendCut(b []byte, size int) error {
	var control [unix.SizeofCmsghdr + 8]byte
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(size))

	data := unix.Iovec{Base: &b[0]}
	data.SetLen(len(b))
	message := unix.Msghdr{Iov: &data, Control: &control[0]}
	message.SetIovlen(1)
	message.SetControllen(unix.CmsgSpace(2))
	_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&message)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return errno
	}
	return nil
}

// Close also ends the socket's events.
func (c *udpChannel) Close() error { return os.NewSyscallError("close", unix.Close(c.fd)) }
