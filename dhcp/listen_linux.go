package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/mdlayher/packet"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// sockets are what Listen opens.
type sockets struct {
	conn   *net.UDPConn     // receives all, sends to clients and relays that have an address
	raw    *packet.Conn     // sends frames, receives nothing
	mac    net.HardwareAddr // of the interface
	source []byte           // control message that makes Address the source of UDP answers
}

// receiveBuffer holds the requests of a whole room that powers on while we are
// busy; the kernel's default drops them after some 200 packets.
const receiveBuffer = 4 << 20

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
	for _, a := range own {
		if a == s.Address {
			s.source = (&ipv4.ControlMessage{Src: a.AsSlice()}).Marshal()
		}
	}
	if s.conn, err = listenUDP(ifi.Name); err != nil {
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("%w (is another DHCP server running?)", err)
		}
		return err
	}
	// Protocol 0 receives nothing.
	s.raw, err = packet.Listen(ifi, packet.Raw, 0, nil)
	return err
}

// Close closes the sockets. Serve does so when it ends.
func (s *Server) Close() error {
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.raw != nil {
		errs = append(errs, s.raw.Close())
	}
	return errors.Join(errs...)
}

// listenUDP opens port 67 on one interface. Neither SO_REUSEADDR nor
// SO_REUSEPORT is set: with them a second server would start without an error
// and take a share of the packets.
func listenUDP(device string) (*net.UDPConn, error) {
	var serr error
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) { serr = setOptions(int(fd), device) })
		return errors.Join(err, serr)
	}}
	c, err := lc.ListenPacket(context.Background(), "udp4", fmt.Sprintf(":%d", serverPort))
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

func setOptions(fd int, device string) error {
	// More than net.core.rmem_max allows takes CAP_NET_ADMIN; without it the
	// kernel gives what it can.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return fmt.Errorf("set receive buffer: %w", err)
		}
	}
	// Before bind: the ports of different interfaces do not collide.
	if err := unix.BindToDevice(fd, device); err != nil {
		return fmt.Errorf("bind to interface: %w", err)
	}
	return nil
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
