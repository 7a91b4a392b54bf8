package ra

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"drover/internal/ifaddr"
	"drover/pools"
)

// maxFrame holds a frame of an Ethernet with jumbo frames.
const maxFrame = 9216 + ethernetHeader

// maxLocal is how many advertisements of this host wait to be read.
const maxLocal = 16

// identity is an interface as it was found.
type identity struct {
	station
	index     int
	addresses []netip.Addr
}

var (
	errLoopback = errors.New("a loopback interface has no routers")
	errDown     = errors.New("the interface is down")
)

// identify finds an interface by its name. Its address is the kernel's link-local one, or
// where the kernel has no IPv6, the one that belongs to the MAC.
func identify(name string) (id identity, err error) {
	ifi, err := net.InterfaceByName(name)
	switch {
	case err != nil:
		return id, err
	case ifi.Flags&net.FlagLoopback != 0:
		return id, errLoopback
	case len(ifi.HardwareAddr) != 6:
		return id, errors.New("not an Ethernet interface")
	case ifi.Flags&net.FlagUp == 0 || ifi.Flags&net.FlagRunning == 0:
		return id, errDown
	}
	id.index, id.mac = ifi.Index, pools.MAC(ifi.HardwareAddr)
	id.addr = linkLocal(id.mac)
	addrs, err := ifi.Addrs()
	if err != nil {
		return id, err
	}
	for _, p := range ifaddr.Prefixes(addrs) {
		id.addresses = append(id.addresses, p.Addr())
	}
	if i := slices.IndexFunc(id.addresses, func(a netip.Addr) bool { return a.Is6() && a.IsLinkLocalUnicast() }); i >= 0 {
		id.addr = id.addresses[i]
	}
	return id, nil
}

// link are the sockets on an interface.
type link struct {
	identity
	conn  *packet.Conn
	own   *ipv6.PacketConn // nil: the kernel has no IPv6 there
	local chan message
	close func()
}

// openLink opens the sockets.
func openLink(id identity) (*link, error) {
	filter, err := bpf.Assemble(frameFilter(id.index))
	if err != nil {
		return nil, err
	}
	ifi := &net.Interface{Index: id.index}
	c, err := packet.Listen(ifi, packet.Raw, etherTypeIPv6, &packet.Config{Filter: filter})
	if err != nil {
		return nil, fmt.Errorf("open a socket for frames (it takes CAP_NET_RAW): %w", err)
	}
	// The card must receive what is for routers, and for all hosts.
	for _, group := range []pools.MAC{allNodes().mac, allRouters().mac} {
		if err := c.JoinGroup(group[:]); err != nil {
			return nil, errors.Join(fmt.Errorf("receive %s: %w", group, err), c.Close())
		}
	}
	l := &link{identity: id, conn: c, local: make(chan message, maxLocal)}
	l.own = openOwn(id)
	if l.own != nil {
		go l.hearOwn()
	}
	l.close = sync.OnceFunc(func() {
		_ = c.Close() // it is gone in any case
		if l.own != nil {
			_ = l.own.Close()
		}
	})
	return l, nil
}

// Offsets into a frame.
const (
	etherTypeAt  = 12
	nextHeaderAt = ethernetHeader + 6
	typeAt       = ethernetHeader + ipv6Header
)

// frameFilter lets the socket receive solicitations and advertisements of the interface
// itself. A socket also sees the frames of VLANs: those of a VLAN that has an interface
// have its index, and the kernel says of the others that they are for another host.
func frameFilter(index int) []bpf.Instruction {
	const none, all = 0, 1 << 20
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(index), SkipTrue: 10},
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OTHERHOST, SkipTrue: 8},
		bpf.LoadAbsolute{Off: etherTypeAt, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: etherTypeIPv6, SkipTrue: 6},
		bpf.LoadAbsolute{Off: nextHeaderAt, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocolICMPv6, SkipTrue: 4},
		bpf.LoadAbsolute{Off: typeAt, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: typeSolicitation, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: typeAdvertisement, SkipTrue: 1},
		bpf.RetConstant{Val: all},
		bpf.RetConstant{Val: none},
	}
}

// read reads a frame. It returns an error of os.ErrDeadlineExceeded at the deadline.
func (l *link) read(b []byte, deadline time.Time) (int, error) {
	if err := l.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, _, err := l.conn.ReadFrom(b)
	return n, err
}

// send sends a frame.
func (l *link) send(f []byte) error {
	_, err := l.conn.WriteTo(f, &packet.Addr{HardwareAddr: f[:6]})
	return err
}

// drops returns how many frames the kernel has dropped since the last call.
func (l *link) drops() uint64 {
	stats, err := l.conn.Stats()
	if err != nil {
		return 0
	}
	return uint64(stats.Drops)
}

// openOwn opens a socket that hears the routers of this host: no socket for frames
// receives what its own host sends. It also joins the group of all routers, so that
// switches that snoop on MLD pass solicitations on. Where the kernel has no IPv6, there
// are neither, and it returns nil.
func openOwn(id identity) *ipv6.PacketConn {
	var refused error
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(c.Control(func(fd uintptr) {
			// SO_BINDTOIFINDEX
			refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, id.index)
		}), refused)
	}}
	c, err := config.ListenPacket(context.Background(), "ip6:ipv6-icmp", "::")
	if err != nil {
		return nil
	}
	p := ipv6.NewPacketConn(c)
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterAdvertisement)
	group := allRouters().addr
	err = errors.Join(p.SetICMPFilter(&filter), p.SetControlMessage(ipv6.FlagHopLimit, true),
		p.JoinGroup(&net.Interface{Index: id.index}, &net.IPAddr{IP: group.AsSlice()}))
	if err != nil {
		_ = c.Close() // it has told why it is of no use
		return nil
	}
	return p
}

// hearOwn passes on the advertisements that a router on this host sends, until the
// socket is closed.
func (l *link) hearOwn() {
	b := make([]byte, maxFrame)
	for {
		n, control, from, err := l.own.ReadFrom(b)
		if err != nil {
			return
		}
		src, ok := netip.AddrFromSlice(from.(*net.IPAddr).IP)
		if !ok || src != l.addr || control == nil || control.HopLimit != maxHops || n == 0 {
			continue
		}
		m := message{typ: b[0], from: station{l.mac, src}}
		m.valid = m.parseBody(b[:n]) // the kernel has checked the sum
		select {
		case l.local <- m:
		default: // the next one will do
		}
	}
}
