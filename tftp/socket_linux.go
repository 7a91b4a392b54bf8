package tftp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// place is an address of ours, with the interface that a packet came in by.
// Answers leave from it: a host has several addresses, and a client drops what
// comes from another one than it asked.
type place struct {
	addr netip.Addr
	ifi  int
}

// message is a packet, or several of one size to one client.
type message struct {
	data []byte
	each int // bytes of each packet in data, the last may be shorter; 0: data is one packet
	peer netip.AddrPort
	at   place
}

// several tells whether the message is more than one packet.
func (m *message) several() bool { return m.each > 0 && len(m.data) > m.each }

// socket is a UDP socket that sends and receives many packets in one call.
type socket interface {
	// receive waits for packets, at most for wait; 0 is for ever. With look it
	// may do so without sleeping. It returns how many of in it filled, 0 when
	// none came. The data is good until it is called again. Its error is
	// net.ErrClosed after close.
	receive(in []message, wait time.Duration, look bool) (int, error)
	// send sends what the network takes; TFTP sends again what it does not. It
	// is for one goroutine at a time, which need not be that of receive.
	send(out []message)
	// room is how many bytes of UDP content fit into a packet of the network
	// that is reached through at.
	room(at place) int
	addr() net.Addr
	// stop ends receive; close frees the socket. Only its reader calls close.
	stop()
	close()
}

// udpSocket blocks a thread while it waits, on purpose: one client without a
// window is a game of ping-pong, in which the way through the runtime's poller
// takes as long as all the rest.
type udpSocket struct {
	file    *os.File // owns fd
	fd      int      // blocking, and not in the poller
	local   *net.UDPAddr
	six     bool
	waits   time.Duration // the receive timeout that is set
	in, out *batch
	uncut   bool // the kernel does not cut messages into packets: before Linux 4.18, and for odd network cards
	linger  linger
	stopped chan struct{}
}

// listenUDP opens a socket. An address without a host is IPv4's.
func listenUDP(addr string) (*udpSocket, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	network := "udp"
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.Is4() {
		network = "udp4"
	} else if err == nil {
		network = "udp6"
	}
	conn, err := net.ListenPacket(network, addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // its port lives on in the duplicate
	file, err := conn.(*net.UDPConn).File()
	if err != nil {
		return nil, err
	}
	s := &udpSocket{file: file, fd: int(file.Fd()), local: conn.LocalAddr().(*net.UDPAddr), stopped: make(chan struct{})}
	s.linger.able = runtime.GOMAXPROCS(0) > 1
	s.six = s.local.IP.To4() == nil
	s.in, s.out = newBatch(receiveBatch, s.six), newBatch(sendBatch, s.six)
	if err := s.enlarge(); err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

// tellPlace makes receive tell where packets were sent to.
func (s *udpSocket) tellPlace() error {
	level, info := unix.IPPROTO_IP, unix.IP_PKTINFO
	if s.six {
		level, info = unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO
	}
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(s.fd, level, info, 1))
}

// beside opens a socket with a port of its own on the same address.
func (s *udpSocket) beside() (*udpSocket, error) {
	local := *s.local
	local.Port = 0
	return listenUDP(local.String())
}

// enlarge makes room for the requests of a whole room that powers on while we
// are busy. The kernel gives as much of it as its limits allow.
func (s *udpSocket) enlarge() error {
	return os.NewSyscallError("setsockopt", errors.Join(
		unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20),
		unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20),
	))
}

func (s *udpSocket) addr() net.Addr { return s.local }

func (s *udpSocket) receive(in []message, wait time.Duration, look bool) (int, error) {
	if wait != s.waits {
		tv := unix.NsecToTimeval(wait.Nanoseconds())
		if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return 0, os.NewSyscallError("setsockopt", err)
		}
		s.waits = wait
	}
	n, errno := s.await(in, look)
	select {
	case <-s.stopped: // what woke us looks like an empty packet
		return 0, net.ErrClosed
	default:
	}
	switch errno {
	case 0:
		return n, nil
	// EINTR: the runtime interrupts its threads now and then. The others are
	// what an earlier packet met.
	case unix.EAGAIN, unix.EINTR, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN:
		return 0, nil
	}
	return 0, os.NewSyscallError("recvmmsg", errno)
}

// await waits for packets; with look it may look for them a while first.
func (s *udpSocket) await(in []message, look bool) (n int, errno unix.Errno) {
	if !look {
		return s.in.receive(s.fd, in, unix.MSG_WAITFORONE)
	}
	began := time.Now()
	if s.linger.worth(began) {
		if n, errno = s.look(in, began); errno != unix.EAGAIN {
			return n, errno
		}
	}
	n, errno = s.in.receive(s.fd, in, unix.MSG_WAITFORONE)
	s.linger.quick = time.Since(began) < lingerTime
	return n, errno
}

// look looks for packets without sleeping. EAGAIN is that none came in time.
func (s *udpSocket) look(in []message, began time.Time) (n int, errno unix.Errno) {
	for at := began; at.Sub(began) < lingerTime; {
		if n, errno = s.in.receive(s.fd, in, unix.MSG_DONTWAIT); errno != unix.EAGAIN {
			return n, errno
		}
		runtime.Gosched()
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // never fails
		now := time.Now()
		if now.Sub(at) > lingerShare {
			s.linger.after = now.Add(lingerPause)
			break
		}
		at = now
	}
	return 0, unix.EAGAIN
}

// linger is whether a port with many clients looks for its next packet before its
// thread goes to sleep. To wake a sleeping thread takes longer than to answer a
// packet, on a virtual machine many times that, and all the clients wait for it.
type linger struct {
	able  bool      // with one processor Go's scheduler would not get round to other sockets
	quick bool      // the packet before came soon
	after time.Time // not before: somebody else wants the processor
}

const (
	// lingerTime is how soon a packet has to come: the round trip of a segment.
	lingerTime = 1500 * time.Microsecond
	// lingerShare is for how long others may have the processor that is yielded
	// to them at each look; if it is longer, it is left to them for lingerPause.
	lingerShare = 100 * time.Microsecond
	lingerPause = 50 * time.Millisecond
)

// worth tells whether to look.
func (l *linger) worth(now time.Time) bool { return l.able && l.quick && now.After(l.after) }

// stop wakes the reader. Shutting a socket down that is not connected is an
// error, and wakes it all the same.
func (s *udpSocket) stop() {
	close(s.stopped)
	_ = unix.Shutdown(s.fd, unix.SHUT_RD)
}

func (s *udpSocket) close() { s.file.Close() }

func (s *udpSocket) send(out []message) {
	for len(out) > 0 {
		if s.uncut && out[0].several() {
			s.sendCut(out[0])
			out = out[1:]
			continue
		}
		n, errno := s.out.send(s.fd, out)
		switch errno {
		case 0:
			out = out[n:]
		case unix.EINTR:
		case unix.EINVAL, unix.EIO, unix.EOPNOTSUPP:
			s.uncut = s.uncut || out[0].several()
			fallthrough
		default:
			if out[0].several() {
				s.sendCut(out[0])
			}
			out = out[1:]
		}
	}
}

// sendCut sends the packets of a message one by one.
func (s *udpSocket) sendCut(m message) {
	packets := make([]message, 0, maxWindow)
	for data := range slices.Chunk(m.data, m.each) {
		packets = append(packets, message{data: data, peer: m.peer, at: m.at})
	}
	for len(packets) > 0 {
		n, _ := s.out.send(s.fd, packets)
		packets = packets[max(n, 1):]
	}
}

// Headers of IP and UDP.
const (
	headers4 = 20 + 8
	headers6 = 40 + 8
	leastMTU = 576 // what RFC 791 has every network carry
)

// room asks the kernel for the interface's MTU.
func (s *udpSocket) room(at place) int {
	mtu := leastMTU
	if ifr, err := unix.NewIfreq(strconv.Itoa(at.ifi)); err == nil { // the name is filled in
		ifr.SetUint32(uint32(at.ifi))
		if unix.IoctlIfreq(s.fd, unix.SIOCGIFNAME, ifr) == nil && unix.IoctlIfreq(s.fd, unix.SIOCGIFMTU, ifr) == nil {
			mtu = int(ifr.Uint32())
		}
	}
	if s.six {
		return mtu - headers6
	}
	return mtu - headers4
}
