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
	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"drover/dhcp/neighbor"
	"drover/dhcp/packetio"
	"drover/dhcp/shed"
	"drover/internal/ifaddr"
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
	conn     *socket        // port 67: receives what socketFilter lets pass, sends to clients and relays that have an address
	boot     *socket        // port 4011; nil but in proxy mode
	observer *socket        // frames to these ports that socketFilter keeps from conn and boot
	raw      *packet.Conn   // sends frames, receives nothing
	nearby   *neighbor.Conn // asks hosts on the wire for their addresses
	index    int            // of the interface
	wire     []netip.Prefix // addresses of the interface, with their networks
	all      []conn         // to be closed
}

// udp returns the UDP sockets.
func (s *sockets) udp() []*socket {
	if s.boot == nil {
		return []*socket{s.conn}
	}
	return []*socket{s.conn, s.boot}
}

// observed is the filter of the observer.
func (s *sockets) observed(relays []pools.MAC) []bpf.Instruction {
	if s.boot == nil {
		return frameFilter(relays, serverPort, serverPort)
	}
	return frameFilter(relays, serverPort, bootPort)
}

// conn is the common part of all sockets.
type conn interface {
	Close() error
	SetReadDeadline(time.Time) error
}

// socket is a UDP port on one interface, or all frames of the interface.
type socket struct {
	conn
	raw    syscall.RawConn
	source []byte // control message that makes the server's address the source of a packet
}

// ErrNotReady is the error of an interface that does not exist or has no address. It may
// get one later.
var ErrNotReady = errors.New("the interface is not ready")

// Listen opens the sockets. It needs CAP_NET_BIND_SERVICE and CAP_NET_RAW. It may be called
// again when Serve has returned.
func (s *Server) Listen() error {
	if s.sockets = (sockets{}); s.found {
		s.Address = netip.Addr{}
	}
	if err := s.listen(); err != nil {
		s.Close()
		return fmt.Errorf("dhcp on %q: %w", s.Interface, err)
	}
	return nil
}

func (s *Server) listen() error {
	ifi, err := net.InterfaceByName(s.Interface)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	if len(ifi.HardwareAddr) != 6 {
		return errors.New("not an Ethernet interface")
	}
	if s.wire, err = addresses(ifi); err != nil {
		return err
	}
	if !s.Address.IsValid() {
		if len(s.wire) == 0 {
			return fmt.Errorf("%w: no IPv4 address on the interface, and none is configured", ErrNotReady)
		}
		s.Address, s.found = s.wire[0].Addr(), true
	}
	if !s.Address.Is4() {
		return fmt.Errorf("address %s is not IPv4", s.Address)
	}
	s.index = ifi.Index
	s.card.Store(&ifi.HardwareAddr)
	if s.conn, err = s.open(serverPort); err != nil {
		return err
	}
	if s.Mode == pools.DHCPProxy {
		if s.boot, err = s.open(bootPort); err != nil {
			return err
		}
	}
	if s.observer, err = s.openObserver(ifi); err != nil {
		return err
	}
	if s.raw, err = s.openRaw(ifi, 0, nil); err != nil { // protocol 0 receives nothing
		return err
	}
	if s.nearby, err = neighbor.Listen(ifi, s.mac); err == nil {
		s.all = append(s.all, s.nearby)
	}
	return err
}

// mac returns the MAC of the interface.
func (s *Server) mac() net.HardwareAddr { return *s.card.Load() }

// Changed reports whether the sockets do not fit the interface any more: it is gone,
// another one has its name, or its addresses are others. Serve must then end, and Listen
// be called again. Another MAC is in force at once, without that: a bridge takes the MAC
// of another port when one comes or goes. Changed must not be called during Listen.
func (s *Server) Changed() bool {
	ifi, err := net.InterfaceByName(s.Interface)
	if err != nil || ifi.Index != s.index || len(ifi.HardwareAddr) != 6 {
		return true
	}
	s.card.Store(&ifi.HardwareAddr)
	wire, err := addresses(ifi)
	return err != nil || !slices.Equal(wire, s.wire)
}

// openRaw opens a socket for Ethernet frames of a protocol. The kernel also gives it the
// frames of the VLANs on the interface, and those of a bond to the bonded interfaces: such
// a frame has the index of the other interface.
func (s *Server) openRaw(ifi *net.Interface, protocol int, filter []bpf.RawInstruction) (*packet.Conn, error) {
	c, err := packet.Listen(ifi, packet.Raw, protocol, &packet.Config{Filter: filter})
	if err == nil {
		s.all = append(s.all, c)
	}
	return c, err
}

// openObserver opens the socket that sees who sends packets of others.
func (s *Server) openObserver(ifi *net.Interface) (*socket, error) {
	filter, err := bpf.Assemble(s.observed(nil))
	if err != nil {
		return nil, err
	}
	c, err := s.openRaw(ifi, etherTypeIPv4, filter)
	if err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &socket{conn: c, raw: raw}, errors.Join(packetio.SetReceiveBuffer(raw, receiveBuffer/4), packetio.AskForStatus(raw))
}

// open opens a UDP port. Packets have Address as their source when that is one of
// the interface's own. Neither SO_REUSEADDR nor SO_REUSEPORT is set: with them a
// second server would start without an error and take a share of the packets.
func (s *Server) open(port int) (*socket, error) {
	var refused error
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) { refused = setOptions(int(fd), s.Interface) })
		return errors.Join(err, refused, packetio.SetReceiveBuffer(c, receiveBuffer))
	}}
	conn, err := config.ListenPacket(context.Background(), "udp4", fmt.Sprintf(":%d", port))
	if errors.Is(err, unix.EADDRINUSE) {
		err = fmt.Errorf("%w (is another DHCP server running?)", err)
	}
	if err != nil {
		return nil, err
	}
	udp := conn.(*net.UDPConn)
	c := &socket{conn: udp}
	if c.raw, err = udp.SyscallConn(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if slices.ContainsFunc(s.wire, func(p netip.Prefix) bool { return p.Addr() == s.Address }) {
		c.source = (&ipv4.ControlMessage{Src: s.Address.AsSlice()}).Marshal()
	}
	s.all = append(s.all, c)
	return c, nil
}

// setOptions sets the options of a socket before it is bound.
func setOptions(fd int, device string) error {
	if err := attach(fd, socketFilter(nil, shed.All)); err != nil {
		return err
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

// addresses returns the IPv4 addresses of an interface, each with its network.
func addresses(ifi *net.Interface) ([]netip.Prefix, error) {
	list, err := ifi.Addrs()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ifaddr.Prefixes(list), func(p netip.Prefix) bool { return !p.Addr().Is4() }), nil
}
