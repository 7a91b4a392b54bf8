package dhcpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"drover/pools"
)

const (
	serverPort = 67
	bootPort   = 4011 // for boot programs that have an address of another server
)

// receiveBuffer holds the requests of a whole room that powers on while we are
// busy; the kernel's default drops them after some 200 packets.
const receiveBuffer = 4 << 20

// sockets are those that Listen opens.
type sockets struct {
	conn *socket          // port 67: receives all, sends to clients and relays that have an address
	boot *socket          // port 4011; nil but in proxy mode
	raw  *packet.Conn     // sends frames, receives nothing
	arp  *packet.Conn     // sends and receives ARP; nil without Probe
	mac  net.HardwareAddr // of the interface
	all  []conn           // to be closed
}

// conn is the common part of all sockets.
type conn interface {
	Close() error
	SetReadDeadline(time.Time) error
}

// socket is a UDP port on one interface.
type socket struct {
	*net.UDPConn
	raw    syscall.RawConn
	source []byte // control message that makes the server's address the source of a packet
}

// Listen opens the sockets. It needs CAP_NET_BIND_SERVICE and CAP_NET_RAW.
func (s *Server) Listen() error {
	if err := s.listen(); err != nil {
		s.Close()
		return fmt.Errorf("dhcp on %q: %w", s.Interface, err)
	}
	return nil
}

func (s *Server) listen() error {
	ifi, err := net.InterfaceByName(s.Interface)
	if err != nil {
		return err
	}
	if len(ifi.HardwareAddr) != 6 {
		return errors.New("not an Ethernet interface")
	}
	own, err := addresses(ifi)
	if err != nil {
		return err
	}
	if !s.Address.IsValid() {
		if len(own) == 0 {
			return errors.New("no IPv4 address on the interface, and none is configured")
		}
		s.Address = own[0]
	}
	if !s.Address.Is4() {
		return fmt.Errorf("address %s is not IPv4", s.Address)
	}
	s.mac = ifi.HardwareAddr
	if s.conn, err = s.open(own, serverPort); err != nil {
		return err
	}
	if s.Mode == pools.DHCPProxy {
		if s.boot, err = s.open(own, bootPort); err != nil {
			return err
		}
	}
	if s.raw, err = s.openRaw(ifi, 0); err != nil || !s.Probe { // protocol 0 receives nothing
		return err
	}
	s.arp, err = s.openRaw(ifi, etherTypeARP)
	return err
}

// openRaw opens a socket for Ethernet frames of a protocol.
func (s *Server) openRaw(ifi *net.Interface, protocol int) (*packet.Conn, error) {
	c, err := packet.Listen(ifi, packet.Raw, protocol, nil)
	if err == nil {
		s.all = append(s.all, c)
	}
	return c, err
}

// open opens a UDP port. Packets have Address as their source when that is one of
// the interface's own. Neither SO_REUSEADDR nor SO_REUSEPORT is set: with them a
// second server would start without an error and take a share of the packets.
func (s *Server) open(own []netip.Addr, port int) (*socket, error) {
	var refused error
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(c.Control(func(fd uintptr) { refused = setOptions(int(fd), s.Interface) }), refused)
	}}
	conn, err := config.ListenPacket(context.Background(), "udp4", fmt.Sprintf(":%d", port))
	if errors.Is(err, unix.EADDRINUSE) {
		err = fmt.Errorf("%w (is another DHCP server running?)", err)
	}
	if err != nil {
		return nil, err
	}
	c := &socket{UDPConn: conn.(*net.UDPConn)}
	if c.raw, err = c.SyscallConn(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if slices.Contains(own, s.Address) {
		c.source = (&ipv4.ControlMessage{Src: s.Address.AsSlice()}).Marshal()
	}
	s.all = append(s.all, c)
	return c, nil
}

// setOptions sets the options of a socket before it is bound.
func setOptions(fd int, device string) error {
	// More than net.core.rmem_max allows takes CAP_NET_ADMIN; without it the
	// kernel gives what it can.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return fmt.Errorf("set receive buffer: %w", err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
		return fmt.Errorf("count dropped packets: %w", err)
	}
	if err := unix.BindToDevice(fd, device); err != nil {
		return fmt.Errorf("bind to interface: %w", err)
	}
	return nil
}

// Close closes the sockets. Serve does so when it ends.
func (s *Server) Close() error {
	var errs []error
	for _, c := range s.all {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// stopReading makes all reads return. Answers can still be sent.
func (s *Server) stopReading() {
	for _, c := range s.all {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// addresses returns the IPv4 addresses of an interface.
func addresses(ifi *net.Interface) ([]netip.Addr, error) {
	list, err := ifi.Addrs()
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			found = append(found, p.Addr())
		}
	}
	return found, nil
}
