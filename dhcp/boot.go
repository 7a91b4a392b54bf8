package dhcp

import (
	"context"
	"fmt"
	"net/netip"
)

// serveBoot answers what comes to port 4011, until ctx ends. That is little: a
// boot program asks there once, after the offers.
func (s *Server) serveBoot(ctx context.Context) {
	b, buf, limiter := newBatch(1), make([]byte, bufferSize), newLimiter(s.now())
	b.place(0, buf)
	for ctx.Err() == nil {
		n, err := s.boot.receive(b, 0)
		if err != nil || ctx.Err() != nil {
			s.pause(ctx, err)
			continue
		}
		if n == 0 {
			continue
		}
		r := &request{buf: buf, n: b.length(0), received: s.now(), from: b.sender(0).Addr()}
		r.glance = look(r.bytes())
		if s.forged(r) {
			x := r.exchange(Forged)
			s.done(&x)
			continue
		}
		if !limiter.allow(r.mac, r.received) {
			x := r.exchange(TooOften)
			s.done(&x)
			continue
		}
		s.answerBoot(r, b.sender(0))
	}
}

// answerBoot answers one request to the address and port that it came from. A
// panic costs that packet only.
func (s *Server) answerBoot(r *request, from netip.AddrPort) {
	x := r.exchange(Failed)
	defer s.rescue(&x)
	reply, x := s.handleAt(r.bytes(), r.received, bootPort)
	if reply != nil {
		if err := s.boot.send(reply.append(nil), from); err != nil {
			x.Err = fmt.Errorf("send to %s: %w", from, err)
		}
	}
	s.done(&x)
}
