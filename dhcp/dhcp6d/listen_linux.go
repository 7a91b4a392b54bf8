package dhcp6d

import (
	"bytes"
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
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"drover/dhcp/dhcp6"
	"drover/dhcp/neighbor"
	"drover/dhcp/packetio"
	"drover/dhcp/shed"
	"drover/internal/ifaddr"
	"drover/pools"
)

// receiveBuffer holds the requests of a room that powers on, in bytes.
const receiveBuffer = 4 << 20

// ErrNotReady is the error of an interface that does not exist. It may come later.
var ErrNotReady = errors.New("the interface is not ready")

// sockets are those of one interface.
type sockets struct {
	frames *packet.Conn    // receives
	udp    *net.UDPConn    // sends, and holds the port and the multicast groups
	reader syscall.RawConn // of frames
	writer syscall.RawConn // of udp
	name   string
	index  int
	mac    pools.MAC

	nearby    *neighbor.Conn // asks hosts on the wire for their addresses
	addresses []netip.Prefix // of IPv6, with their networks
}

// open opens the sockets of an interface.
func open(name string) (*sockets, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	if len(ifi.HardwareAddr) != 6 {
		return nil, errors.New("not an Ethernet interface")
	}
	c := &sockets{name: name, index: ifi.Index, mac: pools.MAC(ifi.HardwareAddr)}
	if c.addresses, err = addresses(ifi); err != nil {
		return nil, err
	}
	if c.udp, err = listenUDP(ifi); err != nil {
		return nil, err
	}
	program, err := bpf.Assemble(filter(uint32(ifi.Index), shed.All))
	if err == nil {
		c.frames, err = packet.Listen(ifi, packet.Raw, etherTypeIPv6, &packet.Config{Filter: program})
	}
	if err == nil {
		c.reader, err = c.frames.SyscallConn()
	}
	if err == nil {
		err = packetio.SetReceiveBuffer(c.reader, receiveBuffer)
	}
	if err == nil {
		err = packetio.AskForStatus(c.reader)
	}
	if err == nil {
		c.writer, err = c.udp.SyscallConn()
	}
	if err == nil {
		c.nearby, err = neighbor.Listen(ifi, func() net.HardwareAddr { return c.mac[:] })
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// listenUDP opens port 547 of an interface and joins the multicast groups. The frames are
// received by another socket.
func listenUDP(ifi *net.Interface) (*net.UDPConn, error) {
	var refused error
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(c.Control(func(fd uintptr) { refused = setOptions(int(fd), ifi.Name) }), refused)
	}}
	conn, err := config.ListenPacket(context.Background(), "udp6", fmt.Sprintf("[::]:%d", dhcp6.ServerPort))
	if errors.Is(err, unix.EADDRINUSE) {
		err = fmt.Errorf("%w (is another DHCPv6 server running?)", err)
	}
	if err != nil {
		return nil, err
	}
	groups := ipv6.NewPacketConn(conn)
	for _, group := range [...]netip.Addr{allAgents(), allServers()} {
		if err := groups.JoinGroup(ifi, &net.UDPAddr{IP: group.AsSlice()}); err != nil {
			return nil, errors.Join(fmt.Errorf("join %s: %w", group, err), conn.Close())
		}
	}
	return conn.(*net.UDPConn), nil
}

// setOptions binds a socket to an interface and lets it receive nothing.
func setOptions(fd int, device string) error {
	if err := unix.BindToDevice(fd, device); err != nil {
		return fmt.Errorf("bind to interface: %w", err)
	}
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing})
	if err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	return nil
}

// isCurrent reports whether the interface of that name is the one of the sockets, with the
// same addresses.
func (c *sockets) isCurrent() bool {
	ifi, err := net.InterfaceByName(c.name)
	if err != nil || ifi.Index != c.index || !bytes.Equal(ifi.HardwareAddr, c.mac[:]) {
		return false
	}
	now, err := addresses(ifi)
	return err == nil && slices.Equal(now, c.addresses)
}

// addresses returns the IPv6 addresses of an interface.
func addresses(ifi *net.Interface) (found []netip.Prefix, err error) {
	list, err := ifi.Addrs()
	for _, p := range ifaddr.Prefixes(list) {
		if p.Addr().Is6() {
			found = append(found, p)
		}
	}
	return found, err
}

// pass sets the share of the SOLICITs that the filter lets pass, in parts of shed.All.
func (c *sockets) pass(share uint32) error {
	program, err := bpf.Assemble(filter(uint32(c.index), share))
	if err != nil {
		return err
	}
	return c.frames.SetBPF(program)
}

// wire returns the networks that are on the wire, without a router between.
func (c *sockets) wire() []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(c.addresses), func(p netip.Prefix) bool { return p.Addr().IsLinkLocalUnicast() })
}

// stopReading makes read return. Answers can still be sent.
func (c *sockets) stopReading() {
	_, _ = c.frames.SetReadDeadline(time.Unix(1, 0)), c.nearby.SetReadDeadline(time.Unix(1, 0))
}

func (c *sockets) close() {
	if c.frames != nil {
		_ = c.frames.Close()
	}
	if c.udp != nil {
		_ = c.udp.Close()
	}
	if c.nearby != nil {
		_ = c.nearby.Close()
	}
}
