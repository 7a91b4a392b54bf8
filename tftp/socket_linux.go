package tftp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// socket is the UDP socket that requests come to. After Close the error of ReadBatch is
// net.ErrClosed.
type socket interface {
	// ReadBatch waits for packets and returns how many of in it filled. The PacketConn
	// of both golang.org/x/net/ipv4 and ipv6 has it: they share the type of a message.
	ReadBatch(in []ipv4.Message, flags int) (int, error)
	// origin returns the place that a packet came to.
	origin(m *ipv4.Message) origin
	// lost returns how many packets the kernel had dropped when it received a packet,
	// because nobody had read those before: a counter that rolls over.
	lost(m *ipv4.Message) uint32
	// payload returns how many bytes of UDP payload fit into a packet of the network.
	payload(o origin) int
	LocalAddr() net.Addr
	Close() error
}

// origin is the place that a packet came to. A host has several addresses, and clients
// drop answers from another one than they asked.
type origin struct {
	addr netip.Addr // not valid: all hosts (multicast or broadcast)
	link int        // the index of the interface
}

// udpSocket is a socket of the kernel. Its reader blocks a thread.
type udpSocket struct {
	packets interface {
		ReadBatch(in []ipv4.Message, flags int) (int, error)
	}
	conn   *blockingConn
	six    bool
	shared bool // the port is that of the transfers, too
	closed atomic.Bool
}

// blockingConn is a UDP connection with a file descriptor that blocks, and that
// the poller does not know.
type blockingConn struct {
	*net.UDPConn // closed; it still has the address
	file         *os.File
	raw          syscall.RawConn // of the file
}

// SyscallConn gives golang.org/x/net the file descriptor.
func (c *blockingConn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

// socketBuffer is the receive buffer, in bytes: enough for the requests of a whole room
// that powers on. The kernel reduces it to its limits.
const socketBuffer = 4 << 20

// listenUDP opens a socket. An address without a host is IPv4's. If shared, other sockets
// of this process may have the same port: those of the transfers.
func listenUDP(addr string, shared bool) (*udpSocket, error) {
	local, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	network := "udp4"
	if local.IP != nil && local.IP.To4() == nil {
		network = "udp6"
	}
	udp, err := net.ListenUDP(network, local)
	if err != nil {
		return nil, err
	}
	defer udp.Close() // the port lives on in the duplicate
	if err := udp.SetReadBuffer(socketBuffer); err != nil {
		return nil, err
	}
	blocking, err := newBlockingConn(udp)
	if err != nil {
		return nil, err
	}
	s := &udpSocket{conn: blocking, six: network == "udp6"}
	err = errors.Join(s.receiveAddresses(), s.control(func(fd int) error {
		return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1))
	}))
	if err == nil && shared {
		// Not before it is bound, or a second server would get the same address.
		err = s.control(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		s.shared = true
	}
	if err != nil {
		blocking.file.Close()
		return nil, err
	}
	return s, nil
}

// control runs f with the file descriptor, and returns its error.
func (s *udpSocket) control(f func(fd int) error) (err error) {
	return errors.Join(s.conn.raw.Control(func(fd uintptr) { err = f(int(fd)) }), err)
}

// newBlockingConn duplicates a connection. The connection's own File method would
// register it with the poller, which then wakes a thread for each packet.
func newBlockingConn(udp *net.UDPConn) (*blockingConn, error) {
	raw, err := udp.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	c := &blockingConn{UDPConn: udp}
	err = raw.Control(func(fd uintptr) {
		var duplicate int
		if duplicate, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); failed == nil {
			failed = unix.SetNonblock(duplicate, false)
			c.file = os.NewFile(uintptr(duplicate), "udp")
		}
	})
	if err = errors.Join(err, failed); err == nil {
		c.raw, err = c.file.SyscallConn()
	}
	return c, err
}

// receiveAddresses makes the kernel deliver the destination address of each packet: a host
// has several addresses, and clients drop answers from another one.
func (s *udpSocket) receiveAddresses() error {
	if s.six {
		p := ipv6.NewPacketConn(s.conn)
		s.packets = p
		return p.SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	}
	p := ipv4.NewPacketConn(s.conn)
	s.packets = p
	return p.SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
}

func (s *udpSocket) ReadBatch(in []ipv4.Message, flags int) (int, error) {
	n, err := s.packets.ReadBatch(in, flags)
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (s *udpSocket) LocalAddr() net.Addr { return s.conn.LocalAddr() }

// Close wakes ReadBatch first. Shutting down a socket that is not connected is an
// error, and wakes it all the same.
func (s *udpSocket) Close() error {
	s.closed.Store(true)
	_ = s.control(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RD) })
	return s.conn.file.Close()
}

// origin reads the address and the interface that a packet came in by.
func (s *udpSocket) origin(m *ipv4.Message) origin {
	received := m.OOB[:m.NN]
	if !s.six {
		return origin4(received)
	}
	var in ipv6.ControlMessage
	_ = in.Parse(received) // the kernel wrote it
	o := origin{link: in.IfIndex}
	if a, ok := netip.AddrFromSlice(in.Dst); ok && !a.IsMulticast() {
		o.addr = a.Unmap()
	}
	return o
}

// lost reads an SO_RXQ_OVFL message, which the kernel adds once it has dropped a packet.
func (s *udpSocket) lost(m *ipv4.Message) uint32 {
	messages, _ := unix.ParseSocketControlMessage(m.OOB[:m.NN]) // the kernel wrote it
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4 {
			return binary.NativeEndian.Uint32(m.Data)
		}
	}
	return 0
}

// origin4 reads an IP_PKTINFO message, see ip(7). A packet whose destination is not the
// host's own address for it was a broadcast or a multicast.
func origin4(received []byte) (o origin) {
	messages, _ := unix.ParseSocketControlMessage(received) // the kernel wrote it
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo {
			o.link = int(int32(binary.NativeEndian.Uint32(m.Data)))
			if own, to := netip.AddrFrom4([4]byte(m.Data[4:8])), netip.AddrFrom4([4]byte(m.Data[8:12])); own == to {
				o.addr = to
			}
		}
	}
	return o
}

const (
	headers4   = 20 + 8 // bytes of IPv4 and UDP
	headers6   = 40 + 8 // bytes of IPv6 and UDP
	minimumMTU = 576    // that every network carries: RFC 791
)

// payload asks the kernel for the MTU of an interface.
func (s *udpSocket) payload(o origin) int {
	mtu := minimumMTU
	_ = s.control(func(fd int) error {
		ifr, err := unix.NewIfreq(strconv.Itoa(o.link)) // the kernel fills in the name
		if err != nil {
			return err
		}
		ifr.SetUint32(uint32(o.link))
		if unix.IoctlIfreq(fd, unix.SIOCGIFNAME, ifr) == nil && unix.IoctlIfreq(fd, unix.SIOCGIFMTU, ifr) == nil {
			mtu = int(ifr.Uint32())
		}
		return nil
	})
	if s.six {
		return mtu - headers6
	}
	return mtu - headers4
}
