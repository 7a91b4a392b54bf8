package attack

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/e2e/dhcptest"
	"drover/e2e/netns"
	"drover/pools"
)

// impostor is a stranger who sends DHCP in the names of others: the router, which is the relay agent,
// the server, a virtual router and the nodes.
type impostor struct {
	*Mutator
	wire   *Wire
	inRack bool
	names  []pools.MAC
	addrs  []netip.Addr // of both families
}

// Impostors sends count packets of each family, from the wire and from the rack each, at a rate for each
// of the four. One in two is mutated. It returns how many were sent.
func (r *Rack) Impostors(ctx context.Context, seed uint64, seeds [][]byte, count, rate int) (sent int, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, send := range []func(*impostor) error{(*impostor).send4, (*impostor).send6, (*impostor).send4, (*impostor).send6} {
		all.Go(func() {
			p, failed := r.impostor(i > 1, &Mutator{Rand: rand.New(rand.NewPCG(uint64(i), seed)), Seeds: seeds})
			n := 0
			if failed == nil {
				defer p.wire.Close()
				n, failed = paceUntil(ctx.Done(), count, rate, func(int) error { return send(p) })
			}
			mu.Lock()
			defer mu.Unlock()
			if sent += n; failed != nil {
				err = failed
			}
		})
	}
	all.Wait()
	if err != nil {
		return sent, err
	}
	return sent, r.leaseAsRouter()
}

// leaseAsRouter leases an address of each family in the name of the router, from the wire, as the last
// packets: what the others have released or declined is then leased again.
func (r *Rack) leaseAsRouter() error {
	w, err := NewWire(r.Wire)
	if err != nil {
		return err
	}
	defer w.Close()
	server := dhcptest.ServerID(netip.MustParseAddr(ServerAddr))
	d := dhcptest.Message(RouterMAC, dhcpv4.MessageTypeRequest, server, dhcptest.Requested("10.77.72.77"))
	request := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeRequest, TransactionID: dhcpv6.TransactionID{7, 7, 7}}
	request.AddOption(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: RouterMAC[:]}))
	request.AddOption(dhcpv6.OptServerID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: ServerMAC[:]}))
	ia := &dhcpv6.OptIANA{}
	ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP("fd00:77::72:77")})
	request.AddOption(ia)
	to := netip.MustParseAddrPort("[ff02::1:2]:547")
	frame := frame6(RouterMAC, pools.MAC{0x33, 0x33, 0, 1, 0, 2}, netip.AddrPortFrom(local6(RouterMAC), 546), to, request.ToBytes())
	return errors.Join(w.Send(pools.MAC{}, broadcast(d.ToBytes())), w.sendFrame(frame))
}

func (r *Rack) impostor(inRack bool, m *Mutator) (*impostor, error) {
	host := map[bool]netns.Namespace{false: r.Wire, true: r.Stranger}[inRack]
	w, err := NewWire(host)
	if err != nil {
		return nil, err
	}
	p := &impostor{Mutator: m, wire: w, inRack: inRack, names: []pools.MAC{RouterMAC, rackMAC, ServerMAC, {0, 0, 0x5e, 0, 1, 7}, w.mac}}
	for _, a := range []string{ServerAddr, RouterAddr, "10.88.0.1", "10.77.72.20", "10.88.72.20", FreeAddr, "fd00:77::1", "fd00:77::fe", "fd00:88::1", "fd00:77::72:20", "fd00:88::72:20"} {
		p.addrs = append(p.addrs, netip.MustParseAddr(a))
	}
	for i := range r.Machines {
		p.names, p.addrs = append(p.names, nodeMAC(i)), append(p.addrs, nodeIP4(i), nodeIP6(i))
	}
	return p, nil
}

// name returns the MAC of another host, or its own.
func (p *impostor) name() pools.MAC { return p.names[p.Rand.IntN(len(p.names))] }

// addr returns an address of a family.
func (p *impostor) addr(v6 bool) netip.Addr {
	for {
		if a := p.addrs[p.Rand.IntN(len(p.addrs))]; a.Is6() == v6 {
			return a
		}
	}
}

// frame returns the MACs of a frame to the server: from the stranger's own card, or that of another
// host. From the rack it goes to the router.
func (p *impostor) frame(multicast pools.MAC) (from, to pools.MAC) {
	from, to = p.wire.mac, multicast
	if p.Rand.IntN(3) == 0 {
		from = p.name()
	}
	if p.Rand.IntN(2) == 0 {
		if to = ServerMAC; p.inRack {
			to = rackMAC
		}
	}
	return from, to
}

// port returns the port of a client or of a relay agent, or any.
func (p *impostor) port(known ...uint16) uint16 {
	if p.Rand.IntN(8) == 0 {
		return uint16(p.Rand.Uint32())
	}
	return known[p.Rand.IntN(len(known))]
}

func (p *impostor) send4() error {
	d := dhcptest.Message(p.name(), dhcpv4.MessageType(1+p.Rand.IntN(8)), dhcptest.ServerID(netip.MustParseAddr(ServerAddr)))
	if p.Rand.IntN(2) == 0 {
		dhcptest.ROM(d)
	}
	a := p.addr(false).String()
	if p.Rand.IntN(2) == 0 {
		dhcptest.Requested(a)(d)
	} else {
		dhcptest.Ciaddr(a)(d)
	}
	source := netip.IPv4Unspecified()
	if p.Rand.IntN(2) == 0 {
		source = p.addr(false)
		if p.Rand.IntN(2) == 0 {
			dhcptest.Giaddr(p.addr(false).String())(d)
			d.HopCount = uint8(p.Rand.IntN(3))
		}
	}
	payload := d.ToBytes()
	if p.Rand.IntN(2) == 0 {
		own := &Mutator{Rand: p.Rand, Seeds: append(slices.Clip(p.Seeds), payload)}
		payload = own.Next()
		if mac := p.name(); len(payload) >= atChaddr+6 {
			copy(payload[atChaddr:], mac[:])
		}
	}
	from, to := p.frame(pools.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	target := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	if to[0]&1 == 0 {
		target = netip.MustParseAddr(ServerAddr)
	}
	w := *p.wire
	w.mac = from
	return w.Send(to, Packet{From: netip.AddrPortFrom(source, p.port(67, 68)), To: netip.AddrPortFrom(target, 67), Payload: payload})
}

func (p *impostor) send6() error {
	name := p.name()
	message := &dhcpv6.Message{MessageType: dhcpv6.MessageType(1 + p.Rand.IntN(13)), TransactionID: dhcpv6.TransactionID(p.bytes(3))}
	message.AddOption(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: name[:]}))
	ia := &dhcpv6.OptIANA{}
	ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: p.addr(true).AsSlice()})
	message.AddOption(ia)
	if p.Rand.IntN(2) == 0 {
		server := &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: ServerMAC[:]}
		message.AddOption(dhcpv6.OptServerID(server))
	}
	var d dhcpv6.DHCPv6 = message
	source, port := local6(name), p.port(546)
	if p.Rand.IntN(2) == 0 {
		for range 1 + p.Rand.IntN(2) {
			relay := &dhcpv6.RelayMessage{MessageType: dhcpv6.MessageTypeRelayForward, LinkAddr: p.addr(true).AsSlice(), PeerAddr: local6(name).AsSlice()}
			relay.AddOption(dhcpv6.OptClientLinkLayerAddress(iana.HWTypeEthernet, name[:]))
			relay.AddOption(dhcpv6.OptRelayMessage(d))
			d = relay
		}
		source, port = p.addr(true), p.port(547)
	}
	payload := d.ToBytes()
	if p.Rand.IntN(2) == 0 {
		payload = (&Mutator{Rand: p.Rand, Seeds: [][]byte{payload}}).Next()
	}
	payload = payload[:min(len(payload), 1452)] // of a frame
	from, to := p.frame(pools.MAC{0x33, 0x33, 0, 1, 0, 2})
	target := netip.MustParseAddr("ff02::1:2")
	if to[0]&1 == 0 {
		target = netip.MustParseAddr("fd00:77::1")
	}
	return p.wire.sendFrame(frame6(from, to, netip.AddrPortFrom(source, port), netip.AddrPortFrom(target, 547), payload))
}

// local6 returns the link-local address of a MAC.
func local6(m pools.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}
