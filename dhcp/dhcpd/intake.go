package dhcpd

import (
	"context"
	"net/netip"
	"runtime"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
)

// intakeTurn is how many batches are read before the workers get a turn on the
// same processor. Reading a packet and dropping it costs a tenth of answering it:
// in an overload most of the time must go into answers, and packets that cannot be
// read are dropped most cheaply by the kernel.
const intakeTurn = 2

// intake reads a socket and admits packets to the queue.
type intake struct {
	*service
	socket  *socket
	batch   *batch
	slots   [batchLength]*request // packet i of the batch is read into slot i
	limiter *limiter

	spoofing, flooding, overflow outburst
}

func newIntake(v *service, s *socket) *intake {
	in := &intake{service: v, socket: s, batch: new(batch), limiter: newLimiter(v.now())}
	for i := range in.slots {
		in.renew(i)
	}
	return in
}

// renew puts a request that is not in use into slot i.
func (in *intake) renew(i int) {
	r, ok := in.free.Get().(*request)
	if !ok {
		r = new(request)
	}
	in.slots[i] = r
	in.batch.set(i, r.buffer[:])
}

// run reads until ctx ends.
func (in *intake) run(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		count, err := in.socket.read(in.batch)
		if err != nil {
			in.pause(ctx, err)
			continue
		}
		if dropped, ok := in.batch.dropped(count - 1); ok {
			in.dropped.Store(dropped)
		}
		now := in.now()
		for i := range count {
			in.admit(i, now)
		}
		if n%intakeTurn == 0 {
			runtime.Gosched()
		}
	}
}

// admit queues packet i of the batch, or drops it. The slot of a dropped packet is
// used again.
func (in *intake) admit(i int, now time.Time) {
	r, from := in.slots[i], in.batch.from(i)
	r.from, r.size, r.received, r.replyTo = from.Addr(), in.batch.size(i), now, netip.AddrPort{}
	if in.socket == in.boot {
		r.replyTo = from
	}
	r.Parse(r.packet())
	switch {
	case in.spoofed(r):
		in.drop(r, dhcp.Spoofed, &in.spoofing, "dhcp: a node sends DHCP in the name of another machine, or of its own firmware")
		return
	case !in.limiter.allow(r.MAC, now):
		in.drop(r, dhcp.TooOften, &in.flooding, "dhcp: a client asks too often, most of its packets are dropped")
		return
	}
	if oldest := in.queue.push(r); oldest != nil {
		in.drop(oldest, dhcp.QueueFull, &in.overflow, "dhcp: more requests than can be answered, dropping the oldest")
		in.free.Put(oldest)
	}
	in.renew(i)
}

// drop ends the exchange of a packet that is not answered. The first of an
// outburst of drops is logged as a warning.
func (in *intake) drop(r *request, why dhcp.Decision, o *outburst, warning string) {
	if o.begins(r.received) {
		in.log().Warn(warning, "interface", in.Interface, "address", r.from, "mac", r.MAC) //nolint:sloglint // each caller passes a literal
	}
	x := r.Exchange(why, r.received)
	in.done(&x)
}

// spoofed reports whether a packet was sent from the address of a machine in the
// name of another one, or of its firmware. A pod can send UDP from its node's
// address. If its DISCOVER counted as one of firmware, the node's next boot would
// seem to have begun, and join tokens are made for a boot.
//
// Firmware has no address when it sends a DISCOVER (RFC 2131, section 4.1), and a
// relay agent is not a node. In proxy mode a client's address is known only from
// its own packets.
func (s *Server) spoofed(r *request) bool {
	relayed, proxy := r.Giaddr.IsValid(), s.Mode == pools.DHCPProxy
	fromFirmware := relayed || r.Type == dhcpv4.MessageTypeDiscover
	if s.Owner == nil || r.from.IsUnspecified() || !fromFirmware && !proxy {
		return false
	}
	owned, own := s.Owner(r.from, r.MAC)
	return owned && (fromFirmware || !own)
}

// outburst is a series of events of one kind. The first is logged, not each of them.
type outburst struct{ last time.Time }

// begins reports whether an event now is the first for ten seconds.
func (o *outburst) begins(now time.Time) bool {
	first := now.Sub(o.last) > 10*time.Second
	o.last = now
	return first
}
