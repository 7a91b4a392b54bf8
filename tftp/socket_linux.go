package tftp

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// batcher receives and sends many packets in one call. The PacketConn of both
// golang.org/x/net/ipv4 and ipv6 is one: they share the type of a message.
type batcher interface {
	// ReadBatch waits for packets and returns how many of in it filled.
	ReadBatch(in []ipv4.Message, flags int) (int, error)
	// WriteBatch returns how many of out the kernel accepted, and the error of the next.
	WriteBatch(out []ipv4.Message, flags int) (int, error)
}

// socket is a UDP socket. After Close the error of ReadBatch is net.ErrClosed.
type socket interface {
	batcher
	// reply returns the control message of the answers to a request, and how
	// many bytes of UDP payload fit into a packet of the network it came from.
	reply(request *ipv4.Message) (control []byte, payload int)
	LocalAddr() net.Addr
	Close() error
}

// udpSocket is a socket of the kernel. Its reader blocks a thread: one client
// without a window takes turns with the server, and the way through the Go
// runtime's poller would take as long as the rest of a turn.
type udpSocket struct {
	batcher
	conn   *blockingConn
	six    bool
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

// listenUDP opens a socket. An address without a host is IPv4's.
func listenUDP(addr string) (*udpSocket, error) {
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
	if err := errors.Join(udp.SetReadBuffer(socketBuffer), udp.SetWriteBuffer(socketBuffer)); err != nil {
		return nil, err
	}
	blocking, err := newBlockingConn(udp)
	if err != nil {
		return nil, err
	}
	s := &udpSocket{conn: blocking, six: network == "udp6"}
	if err := s.receiveAddresses(); err != nil {
		blocking.file.Close()
		return nil, err
	}
	return s, nil
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
		s.batcher = p
		return p.SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	}
	p := ipv4.NewPacketConn(s.conn)
	s.batcher = p
	return p.SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
}

func (s *udpSocket) ReadBatch(in []ipv4.Message, flags int) (int, error) {
	n, err := s.batcher.ReadBatch(in, flags)
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
	_ = s.conn.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RD) })
	return s.conn.file.Close()
}

// reply reads the address and the interface that a request came in by.
func (s *udpSocket) reply(request *ipv4.Message) (control []byte, payload int) {
	received := request.OOB[:request.NN]
	if s.six {
		var in, out ipv6.ControlMessage
		_ = in.Parse(received) // without an address, the kernel chooses one
		if out.Src = in.Dst; out.Src.IsLinkLocalUnicast() {
			out.IfIndex = in.IfIndex
		}
		return out.Marshal(), s.mtu(in.IfIndex) - headers6
	}
	var in ipv4.ControlMessage
	_ = in.Parse(received)
	return (&ipv4.ControlMessage{Src: in.Dst}).Marshal(), s.mtu(in.IfIndex) - headers4
}

const (
	headers4   = 20 + 8 // bytes of IPv4 and UDP
	headers6   = 40 + 8 // bytes of IPv6 and UDP
	minimumMTU = 576    // that every network carries: RFC 791
)

// mtu asks the kernel for the MTU of an interface, in bytes.
func (s *udpSocket) mtu(ifIndex int) int {
	mtu := minimumMTU
	_ = s.conn.raw.Control(func(fd uintptr) {
		ifr, err := unix.NewIfreq(strconv.Itoa(ifIndex)) // the kernel fills in the name
		if err != nil {
			return
		}
		ifr.SetUint32(uint32(ifIndex))
		if unix.IoctlIfreq(int(fd), unix.SIOCGIFNAME, ifr) == nil && unix.IoctlIfreq(int(fd), unix.SIOCGIFMTU, ifr) == nil {
			mtu = int(ifr.Uint32())
		}
	})
	return mtu
}

// segmented appends UDP_SEGMENT to a control message: the kernel then cuts the message
// into packets of size bytes; see udp(7).
func segmented(control []byte, size int) []byte {
	start := len(control)
	c := append(control[:start:start], make([]byte, unix.CmsgSpace(2))...)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[start]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(c[start+unix.CmsgLen(0):], uint16(size))
	return c
}
