package neighbor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"

	"drover/internal/ifaddr"
	"drover/internal/wait"
	"drover/pools"
)

// maxFrame is longer than ARP, and than an advertisement with its option.
const maxFrame = 256

// Conn sends and receives ARP and neighbour discovery on an interface.
type Conn struct {
	card    func() net.HardwareAddr
	own     []netip.Prefix // addresses of the interface, with their networks
	arp, nd *packet.Conn
}

// Listen opens the sockets. It needs CAP_NET_RAW. card returns the MAC of the interface, which can
// change.
func Listen(ifi *net.Interface, card func() net.HardwareAddr) (*Conn, error) {
	list, err := ifi.Addrs()
	if err != nil {
		return nil, err
	}
	c := &Conn{card: card, own: ifaddr.Prefixes(list)}
	own := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(ifi.Index), SkipFalse: 1},
		bpf.RetConstant{Val: maxFrame},
		bpf.RetConstant{Val: 0},
	}
	if c.arp, err = open(ifi, etherTypeARP, own); err == nil {
		c.nd, err = open(ifi, etherTypeIPv6, advertisements(ifi.Index))
	}
	if err != nil {
		_ = c.Close() // nothing was sent
		return nil, err
	}
	return c, nil
}

func open(ifi *net.Interface, protocol int, filter []bpf.Instruction) (*packet.Conn, error) {
	program, err := bpf.Assemble(filter)
	if err != nil {
		return nil, err
	}
	return packet.Listen(ifi, packet.Raw, protocol, &packet.Config{Filter: program})
}

// Probe asks all hosts for an address of IPv4, without a claim to have one.
func (c *Conn) Probe(a netip.Addr) error {
	return write(c.arp, broadcast(), arpRequest(pools.MAC(c.card()), netip.Addr{}, broadcast(), a))
}

// ask asks a host for an address.
func (c *Conn) ask(h Host) error {
	mac := pools.MAC(c.card())
	if h.Addr.Is4() {
		return write(c.arp, h.MAC, arpRequest(mac, c.source(h.Addr), h.MAC, h.Addr))
	}
	return write(c.nd, h.MAC, solicitation(mac, h.MAC, h.Addr))
}

func write(c *packet.Conn, to pools.MAC, frame []byte) error {
	_, err := c.WriteTo(frame, &packet.Addr{HardwareAddr: to[:]})
	return err
}

// source returns the interface's own address on the network of a; the zero Addr if it has none there.
func (c *Conn) source(a netip.Addr) netip.Addr {
	for _, p := range c.own {
		if p.Contains(a) {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// Hear calls heard with each host that says that it has an address, from two goroutines, until ctx
// ends and the reads have a deadline. It calls failed with errors: the interface went down, for
// example.
func (c *Conn) Hear(ctx context.Context, heard func(Host), failed func(error)) {
	var all sync.WaitGroup
	for conn, sender := range map[*packet.Conn]func([]byte) (Host, bool){c.arp: arpSender, c.nd: advertiser} {
		all.Go(func() {
			var b [maxFrame]byte
			for ctx.Err() == nil {
				n, _, err := conn.ReadFrom(b[:])
				if err != nil {
					if ctx.Err() == nil {
						failed(err)
						_ = wait.Sleep(ctx, 100*time.Millisecond)
					}
					continue
				}
				if h, ok := sender(b[:n]); ok {
					heard(h)
				}
			}
		})
	}
	all.Wait()
}

// SetReadDeadline sets the deadline of all reads.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return errors.Join(c.arp.SetReadDeadline(t), c.nd.SetReadDeadline(t))
}

// Close closes the sockets.
func (c *Conn) Close() error {
	var errs []error
	for _, s := range []*packet.Conn{c.arp, c.nd} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
