package dhcp

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// service is a server while it serves.
type service struct {
	*Server
	desks  chan *desk  // the one desk, when no worker has it
	acks   chan answer // to those who wait for the disk
	probes *probes
}

// work is one worker. Having the desk, it reads what came in and takes some
// requests with it to answer. It passes the desk on when there are more of
// them, so that idle workers are woken only when there is work for two. After
// the end of ctx nothing is read any more, but what is queued is answered.
func (v *service) work(ctx context.Context) {
	run := make([]*request, 0, runLength)
	for d := <-v.desks; ; {
		d.reuse(run)
		if ctx.Err() == nil {
			d.fill(ctx)
		}
		run = d.take(run[:0])
		ending := ctx.Err() != nil
		if ending && len(run) == 0 {
			v.desks <- d
			return
		}
		more := ending || !d.queue.empty()
		if more {
			v.desks <- d
		}
		for _, r := range run {
			v.serve(r)
		}
		if more {
			d = <-v.desks
		}
	}
}

// serve answers one packet, or sees to it that it is. A panic costs that
// packet only.
func (v *service) serve(r *request) {
	x := r.exchange(Failed)
	defer v.rescue(&x)
	wait := v.MaxWait
	if wait <= 0 {
		wait = 2 * time.Second
	}
	switch {
	case v.now().Sub(r.received) > wait:
		x.Decision = Stale
	case r.kind == dhcpv4.MessageTypeDiscover && v.probes.under(r.mac):
		x.Decision = Waiting
	default:
		v.answer(r)
		return
	}
	v.done(&x)
}

// answer passes a packet's answer to the wire, or first to those who wait for
// the disk or for the neighbours.
func (v *service) answer(r *request) {
	var a answer
	a.reply, a.x = v.handle(r.bytes(), r.received)
	if a.x.wait != nil {
		select {
		case v.acks <- a:
			return
		default:
			a.reply, a.x.Reply, a.x.Decision = nil, "", QueueFull
		}
	}
	if v.probes.start(a, r.bytes(), 0) {
		return
	}
	v.finish(&a)
}

// finish sends an answer, and tells of the exchange.
func (s *Server) finish(a *answer) {
	if a.reply != nil {
		if err := s.send(destinationOf(a.reply), a.reply.append(nil)); err != nil {
			a.x.Err = err
		}
	}
	s.done(&a.x)
}

// rescue is deferred: it ends a panic, which then cost one exchange.
func (s *Server) rescue(x *Exchange) {
	if err := s.caught(recover()); err != nil {
		x.Reply, x.Decision, x.Err = "", Failed, err
		s.done(x)
	}
}

// caught logs what recover returned.
func (s *Server) caught(v any) error {
	if v == nil {
		return nil
	}
	s.log().Error("dhcp: panic", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
	return fmt.Errorf("panic: %v", v)
}

// handle answers the bytes of one packet to port 67. It keeps none of them.
func (s *Server) handle(b []byte, now time.Time) (*message, Exchange) {
	return s.handleAt(b, now, serverPort)
}

func (s *Server) handleAt(b []byte, now time.Time, port int) (*message, Exchange) {
	if len(b) >= bufferSize {
		return nil, Exchange{Time: now, Decision: Malformed, Err: fmt.Errorf("packet of %d bytes or more", len(b))}
	}
	// Some clients forget the END option, which the parser insists on. What
	// follows an END is not read, so that one more does no harm.
	req, err := dhcpv4.FromBytes(append(b, optEnd))
	if err != nil {
		return nil, Exchange{Time: now, Decision: Malformed, Err: err}
	}
	return s.reply(req, now, port)
}

// done tells of an exchange that ends now.
func (s *Server) done(x *Exchange) {
	x.Took = s.now().Sub(x.Time)
	s.tell(x)
}

// tell tells of an exchange.
func (s *Server) tell(x *Exchange) {
	defer func() { _ = s.caught(recover()) }()
	x.log(s.log())
	if s.OnExchange != nil {
		s.OnExchange(*x)
	}
}
