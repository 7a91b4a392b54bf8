package dhcpd

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"drover/dhcp"
	"drover/dhcp/shed"
	"drover/internal/ifaddr"
	"drover/pools"
)

// intakeTurn is how many batches are read before the workers get a turn on the
// same processor. Reading a packet and dropping it costs a tenth of answering it:
// in an overload most of the time must go into answers, and packets that cannot be
// read are dropped most cheaply by the kernel.
const intakeTurn = 2

// crowd is how many requests of strangers have to wait until machines that no node
// declares, but that hold a lease, get room of their own.
const crowd = 32

// intake reads a socket and admits packets to the queue.
type intake struct {
	service   *service
	socket    *socket
	batch     *batch
	buffers   [batchLength][dhcp.MaxRequest + 1]byte // of the batch; a longer packet is cut off, and so found out
	slots     [batchLength]*request                  // packet i of the batch becomes request i
	limits    *limits
	strangers atomic.Int32 // how many waited in the queue after the last packet
	outbursts outbursts
	shedder   shed.Shedder
	shedding  sync.WaitGroup

	host ifaddr.Host // for frames
}

func newIntake(v *service, s *socket) *intake {
	in := &intake{service: v, socket: s, batch: new(batch), limits: newLimits(v.server.now()), host: ifaddr.Host{List: net.InterfaceAddrs}}
	in.host.Add(everybody(), v.server.Address)
	for _, p := range v.server.wire {
		in.host.Add(p.Addr())
	}
	for i := range in.slots {
		in.batch.set(i, in.buffers[i][:])
		in.renew(i)
	}
	if s != v.server.observer {
		in.shedder.Set = v.relays.pass
	}
	return in
}

// renew puts a request that is not in use into slot i.
func (in *intake) renew(i int) {
	r, ok := in.service.free.Get().(*request)
	if !ok {
		r = new(request)
	}
	in.slots[i] = r
}

// run reads until ctx ends. It returns when nothing of it uses the sockets any more, which the
// next Listen replaces.
func (in *intake) run(ctx context.Context) {
	defer in.shedding.Wait()
	for n := 1; ctx.Err() == nil; n++ {
		count, err := in.socket.read(in.batch)
		if err != nil {
			in.service.server.pause(ctx, err)
			continue
		}
		if dropped, ok := in.batch.dropped(count - 1); ok && in.socket != in.service.server.observer {
			in.service.server.dropped.Store(dropped)
		}
		if in.shedder.Read(count == batchLength) {
			in.shedding.Go(func() { in.shed(ctx) })
		}
		now := in.service.server.now()
		for i := range count {
			r := in.slots[i]
			r.received, r.replyTo = now, netip.AddrPort{}
			if in.identify(r, i) && in.admit(r) {
				in.renew(i)
			}
		}
		if n%intakeTurn == 0 {
			runtime.Gosched()
		}
	}
}

// shed lets the kernel drop DISCOVERs until the queue has room.
func (in *intake) shed(ctx context.Context) {
	in.service.server.log().Warn("dhcp: more packets than can be read, the kernel drops a share of the DISCOVERs", "interface", in.service.server.Interface)
	if err := in.shedder.Run(ctx); err != nil && ctx.Err() == nil {
		in.service.server.log().Warn("dhcp: socket filter that drops DISCOVERs failed", "interface", in.service.server.Interface, "error", err)
	}
}

// identify parses packet i of the batch and finds its sender. It returns false for a
// frame that is not for this host.
func (in *intake) identify(r *request, i int) bool {
	from, packet := in.batch.from(i), in.buffers[i][:in.batch.size(i)]
	if in.socket == in.service.server.observer {
		f, ok := parseFrame(packet)
		if !ok || !f.intact && in.batch.summed(i) || !in.batch.forHost(i, in.service.server.index) || !in.host.Has(f.dst.Addr(), r.received) {
			return false
		}
		from = f.src
		r.parse(f.message)
		r.sender = dhcp.Sender{
			MAC: f.mac, Addr: from.Addr(), BootPort: f.dst.Port() == bootPort,
			Broadcast: f.dst.Addr() == everybody(), Relay: r.Giaddr.IsValid() && in.service.relays.has(f.mac),
		}
	} else {
		// The filter of the socket let the packet pass: see socketFilter.
		r.parse(packet)
		r.sender = dhcp.Sender{MAC: r.Chaddr(), Addr: from.Addr(), BootPort: in.socket == in.service.server.boot}
		if r.Giaddr.IsValid() {
			r.sender.MAC, r.sender.Relay = pools.MAC{}, true
		}
	}
	r.sender.Port, r.Port = from.Port(), from.Port()
	if !from.Addr().IsUnspecified() {
		r.From = from.Addr()
	}
	if r.sender.BootPort {
		r.replyTo = from
	}
	return true
}

// everybody is the broadcast address that no router forwards to.
func everybody() netip.Addr { return netip.AddrFrom4([4]byte{255, 255, 255, 255}) }

// admit queues a packet, or drops it. It returns false when the request is free again.
func (in *intake) admit(r *request) bool {
	v := in.service.senders.Judge(&r.Request, r.sender)
	switch {
	case v.Drop == dhcp.Malformed:
		x := r.Exchange(v.Drop, r.received)
		x.Err = v.Err
		in.service.server.exchanges.Done(&x)
		return false
	case v.Drop != "":
		in.refuse(r, v.Why)
		return false
	case !in.limits.allow(r, r.received):
		in.drop(r, dhcp.TooOften, "dhcp: a client asks too often, most of its packets are dropped")
		return false
	}
	r.known = in.service.machines.Declares(r.MAC) || in.strangers.Load() >= crowd && in.holds(r)
	if v.Confirm.IsValid() || len(v.Unless) > 0 {
		return in.confirm(r, v)
	}
	in.pass(r, v.Relay)
	return true
}

// holds reports whether a machine has a lease: it is in the middle of a boot.
func (in *intake) holds(r *request) bool {
	if in.service.server.Leases == nil {
		return false
	}
	_, ok := in.service.server.Leases.Holds(r.MAC, r.received)
	return ok
}

// pass queues a packet that counts.
func (in *intake) pass(r *request, relay bool) {
	if relay {
		in.service.relays.add(r.sender.MAC, r.received)
	}
	oldest, strangers := in.service.server.queue.push(r)
	in.strangers.Store(int32(strangers))
	if oldest != nil {
		if oldest.known || oldest.Giaddr.IsValid() {
			in.shedder.Overflow() // strangers on the wire are read and dropped: shedding hits known machines too
		}
		in.drop(oldest, dhcp.QueueFull, "dhcp: more requests than can be answered, dropping the oldest")
		in.service.free.Put(oldest)
	}
}

// refuse ends the exchange of a packet that does not count.
func (in *intake) refuse(r *request, why string) {
	if in.service.server.warnings.Allow(slog.LevelWarn, why) {
		in.service.server.log().Warn("dhcp: a packet was not sent by its machine or a relay agent", "why", why, "interface", in.service.server.Interface,
			"mac", r.MAC, "source", r.sender.Addr, "sender", r.sender.MAC, "relay", r.Giaddr)
	}
	x := r.Exchange(dhcp.Spoofed, r.received)
	x.Why = why
	in.service.server.exchanges.Done(&x)
}

// drop ends the exchange of a packet that is not answered. The first of an
// outburst of drops is logged as a warning.
func (in *intake) drop(r *request, why dhcp.Decision, warning string) {
	if in.outbursts.begins(warning, r.received) {
		in.service.server.log().Warn(warning, "interface", in.service.server.Interface, "address", r.sender.Addr, "mac", r.MAC) //nolint:sloglint // each caller passes a literal
	}
	x := r.Exchange(why, r.received)
	in.service.server.exchanges.Done(&x)
}

// outbursts are times in which the server is overloaded, by what it has too little of.
// The first drop of each is logged. Lines of single packets are limited by lograte.
type outbursts struct {
	mu   sync.Mutex
	last map[string]time.Time // by kind; there are few
}

// begins reports whether an event now is the first of its kind for ten seconds.
func (o *outbursts) begins(kind string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = map[string]time.Time{}
	}
	first := now.Sub(o.last[kind]) > 10*time.Second
	o.last[kind] = now
	return first
}
