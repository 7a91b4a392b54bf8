package dhcp6d

import (
	"context"
	"hash/maphash"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/dhcp"
	"drover/dhcp/dhcp6"
	"drover/dhcp/ratelimit"
	"drover/dhcp/shed"
	"drover/internal/ifaddr"
	"drover/pools"
)

// intakeTurn is how many batches are read before the workers get a turn on the same
// processor.
const intakeTurn = 2

// intake reads frames and admits packets to the queues.
type intake struct {
	server  *Server
	senders dhcp6.Senders
	seed    maphash.Seed
	clients *ratelimit.Limiter
	ports   *ratelimit.Limiter
	shedder shed.Shedder

	shedding sync.WaitGroup

	batch   batch
	buffers [batchLength][frameHeaders + dhcp6.MaxRequest]byte // of the batch
	slots   [batchLength]*request                              // packet i of the batch becomes request i

	host ifaddr.Host // and the multicast groups
	own  netip.Addr  // of the interface, in a declared IPv6 subnet; zero for none
}

// run reads from the sockets until ctx ends, or a read fails.
func (in *intake) run(ctx context.Context) error {
	for n := 1; ctx.Err() == nil; n++ {
		count, err := in.server.sockets.read(&in.batch)
		if err != nil {
			return err
		}
		if in.shedder.Read(count == batchLength) {
			in.shedding.Go(func() { in.shed(ctx) })
		}
		now := in.server.now()
		for i := range count {
			r := in.slots[i]
			f, ok := parseFrame(in.buffers[i][:in.batch.size(i)], in.server.sockets.mac)
			if !ok || !f.intact && in.batch.summed(i) || !in.host.Has(f.dst, now) {
				continue
			}
			r.received, r.own = now, in.own
			r.packet = append(r.packet[:0], f.message...)
			r.Parse(r.packet, dhcp6.Sender{MAC: f.mac, Addr: f.src, Port: f.port, Unicast: !f.dst.IsMulticast()})
			r.From.Relay = r.Relayed() && in.server.relays.has(f.mac, now)
			if in.admit(r) {
				in.renew(i)
			}
		}
		if n%intakeTurn == 0 {
			runtime.Gosched()
		}
	}
	return nil
}

// shed lets the kernel drop SOLICITs until the queues have room.
func (in *intake) shed(ctx context.Context) {
	in.server.log().Warn("dhcpv6: more packets than can be read, the kernel drops a share of the SOLICITs", "interface", in.server.Interface)
	if err := in.shedder.Run(ctx); err != nil && ctx.Err() == nil {
		in.server.log().Warn("dhcpv6: socket filter that drops SOLICITs failed", "interface", in.server.Interface, "error", err)
	}
}

// renew puts a request that is not in use into slot i.
func (in *intake) renew(i int) {
	r, ok := in.server.free.Get().(*request)
	if !ok {
		r = new(request)
	}
	in.slots[i] = r
}

// allAgents is the group of all servers and relay agents on a link.
func allAgents() netip.Addr { return netip.MustParseAddr("ff02::1:2") }

// allServers is the group of all servers of a site, which relay agents use.
func allServers() netip.Addr { return netip.MustParseAddr("ff05::1:3") }

// setAddresses sets the addresses that the sockets were opened with.
func (in *intake) setAddresses() {
	in.host = ifaddr.Host{List: net.InterfaceAddrs}
	in.host.Add(allAgents(), allServers())
	for _, p := range in.server.sockets.addresses {
		a := p.Addr()
		in.host.Add(a)
		if !in.own.IsValid() && !a.IsLinkLocalUnicast() && in.server.Networks.InSubnet(a) {
			in.own = a
		}
	}
}

// admit queues a packet, or drops it. It returns false when the request is free again.
func (in *intake) admit(r *request) bool {
	v := in.senders.Judge(&r.Request)
	switch {
	case v.Drop != "":
		in.refuse(r, v.Drop, v.Why, v.Err)
		return false
	case !r.Relayed() && !in.own.IsValid():
		in.drop(r, dhcp.NotOurs, "the interface has no address in a declared IPv6 subnet", nil)
		return false
	case !in.allow(r):
		if in.server.warnings.Allow(slog.LevelWarn, string(dhcp.TooOften)) {
			in.server.log().Warn("dhcpv6: a client asks too often, most of its packets are dropped", "interface", in.server.Interface, "address", r.From.Addr, "mac", r.MAC)
		}
		in.drop(r, dhcp.TooOften, "", nil)
		return false
	case v.Confirm.IsValid(), len(v.Unless) > 0:
		return in.confirm(r, v)
	}
	in.pass(r)
	return true
}

// confirm queues a packet when it turns out that it counts: its sender answers, or does not. It
// returns false when the request is free again.
func (in *intake) confirm(r *request, v dhcp.Verdict) bool {
	asked := in.server.neighbors.Settle(v, in.server.Networks.Routers(), func(counts bool) {
		if !counts {
			in.refuse(r, dhcp.Spoofed, v.Why, nil)
			in.server.free.Put(r)
			return
		}
		if v.Relay {
			in.server.relays.add(r.From.MAC, r.received)
		}
		in.pass(r)
	})
	if !asked {
		in.drop(r, dhcp.QueueFull, "more senders of DHCPv6 than can be asked by neighbour discovery", nil)
	}
	return asked
}

// refuse drops a packet that does not count.
func (in *intake) refuse(r *request, why dhcp.Decision, text string, err error) {
	if err == nil && in.server.warnings.Allow(slog.LevelWarn, text) {
		in.server.log().Warn("dhcpv6: a packet was not sent by its machine or a relay agent", "why", text, "interface", in.server.Interface,
			"mac", r.MAC, "source", r.From.Addr, "port", r.From.Port, "sender", r.From.MAC, "link", r.Link(), "peers", r.Peers())
	}
	in.drop(r, why, text, err)
}

// pass queues a packet that counts.
func (in *intake) pass(r *request) {
	l, known := in.server.strangers, in.server.Machines.Declares(r.MAC)
	if known {
		l = in.server.known
	}
	queue := l.of(r.Type)
	for {
		select {
		case queue <- r:
			return
		default:
		}
		select {
		case oldest := <-queue:
			if known || oldest.Relayed() {
				in.shedder.Overflow() // strangers on the wire are read and dropped: shedding hits known machines too
			}
			in.drop(oldest, dhcp.QueueFull, "", nil)
			in.server.free.Put(oldest)
		default:
		}
	}
}

// client is the key of a client's limit. What one host sends in the name of another is not
// charged to that.
type client struct {
	mac, sender pools.MAC
	relay       netip.Addr
}

// allow reports whether a packet may be answered.
func (in *intake) allow(r *request) bool {
	key := client{mac: r.MAC, sender: r.From.MAC}
	if r.Relayed() {
		key = client{mac: r.MAC, relay: r.From.Addr}
		if port := r.Port(); port != nil &&
			!in.ports.Allow(maphash.Bytes(in.seed, port)^maphash.Comparable(in.seed, r.From.Addr), r.received) {
			return false
		}
	}
	return in.clients.Allow(maphash.Comparable(in.seed, key), r.received)
}

// drop ends the exchange of a packet that is not answered.
func (in *intake) drop(r *request, why dhcp.Decision, text string, err error) {
	x := r.Exchange(why, r.received)
	x.Why, x.Err = text, err
	if r.Type == dhcpv6.MessageTypeAdvertise || r.Type == dhcpv6.MessageTypeReply {
		x.Type = "" // of another server
	}
	in.server.exchanges.Done(&x)
}
