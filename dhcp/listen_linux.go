package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"drover/pools"
)

// sockets are what Listen opens.
type sockets struct {
	conn *socket          // port 67: receives all, sends to clients and relays that have an address
	boot *socket          // port 4011; nil but in proxy mode
	raw  *packet.Conn     // sends frames, receives nothing
	arp  *packet.Conn     // sends and receives ARP; nil without Probe
	mac  net.HardwareAddr // of the interface
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
	if s.conn, err = s.open(ifi.Name, own, serverPort); err != nil {
		return err
	}
	if s.Mode == pools.DHCPProxy {
		if s.boot, err = s.open(ifi.Name, own, bootPort); err != nil {
			return err
		}
	}
	// Protocol 0 receives nothing.
	if s.raw, err = packet.Listen(ifi, packet.Raw, 0, nil); err != nil || !s.Probe {
		return err
	}
	s.arp, err = packet.Listen(ifi, packet.Raw, etherTypeARP, nil)
	return err
}

// open opens a UDP port. What it sends comes from Address when that is one of
// the interface's own.
func (s *Server) open(device string, own []netip.Addr, port int) (*socket, error) {
	c, err := listenUDP(device, port)
	if errors.Is(err, unix.EADDRINUSE) {
		err = fmt.Errorf("%w (is another DHCP server running?)", err)
	}
	if err == nil && slices.Contains(own, s.Address) {
		c.source = (&ipv4.ControlMessage{Src: s.Address.AsSlice()}).Marshal()
	}
	return c, err
}

// Close closes the sockets. Serve does so when it ends.
func (s *Server) Close() error {
	var errs []error
	for _, c := range []*socket{s.conn, s.boot} {
		if c != nil {
			errs = append(errs, c.close())
		}
	}
	for _, c := range []*packet.Conn{s.raw, s.arp} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// stopReading makes all reads return. What is to be sent still can be.
func (s *Server) stopReading() {
	s.conn.stop()
	if s.boot != nil {
		s.boot.stop()
	}
	if s.arp != nil {
		_ = s.arp.SetReadDeadline(time.Unix(1, 0))
	}
}

// pause waits after a read that went wrong: the interface went down, or an ICMP
// error came back. Neither ends the service; a lasting error must not take a
// whole processor.
func (s *Server) pause(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.log().Warn("dhcp: read", "interface", s.Interface, "error", err)
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
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
