package dhcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

// Resolver answers the one question. [pools.Live] is one.
type Resolver interface {
	// Resolve returns the plan of a machine, or nil when it is none of ours.
	// It must not block: it is asked once for every packet.
	Resolve(q pools.Query) *pools.Plan
}

// Leases keeps the addresses that machines of a catch-all pool lease from its
// range. A machine with an address of its own (Plan.Address) never gets here.
// The methods are called concurrently.
type Leases interface {
	// Offer returns the address that the machine p.MAC holds or would get:
	// its lease, else want when that is in the range and free, else a free
	// one. It gives one machine the same address each time. An error says
	// that there is none.
	Offer(p *pools.Plan, want netip.Addr, now time.Time) (netip.Addr, error)
	// Commit gives addr to the machine for p.Lease from now on. The lease is
	// durable when Commit returns nil; only then is it acknowledged.
	Commit(p *pools.Plan, addr netip.Addr, now time.Time) error
	// Release frees addr when mac holds it, and else does nothing.
	Release(mac pools.MAC, addr netip.Addr, now time.Time)
}

// Server answers DHCP on one interface. Set its fields, call Listen, then
// Serve. It must not be copied after that.
type Server struct {
	Farm      Resolver
	Leases    Leases     // may be nil when no pool leases addresses
	Interface string     // the network interface to serve, an Ethernet
	Address   netip.Addr // server identifier and source of answers; default: the interface's first IPv4 address

	Log        *slog.Logger     // one line for each exchange; nil: none
	OnExchange func(Exchange)   // called for each packet, dropped ones too, from several goroutines and not always in order; may be nil
	Now        func() time.Time // the clock; nil: time.Now

	// Workers is how many requests are answered at a time; default 64. Most
	// of them wait for the disk with others that commit a lease at the same
	// time.
	Workers int
	// Queue is how many requests wait for a worker; default 1024. When it is
	// full the oldest is dropped: its client is the nearest to asking again.
	Queue int
	// MaxWait is how long a request waits at most before it is dropped;
	// default 2 s. Clients ask again after 4 s (RFC 2131, section 4.1), and
	// PXE ROMs after 4 s as well; an answer to the first packet would then
	// only make the second wait.
	MaxWait time.Duration

	sockets
}

// request is a packet that waits for a worker.
type request struct {
	buf      *[]byte
	n        int
	received time.Time
}

// Packets on the wire are at most as long as the MTU. What fills this buffer
// was cut off, and is dropped.
const bufferSize = 4096

// Serve answers requests until ctx ends, then closes the sockets and returns
// nil. Listen must have been called. No packet, however broken, ends it.
func (s *Server) Serve(ctx context.Context) error {
	if s.conn == nil {
		return errors.New("dhcp: Serve without Listen")
	}
	defer s.Close()
	queue := make(chan request, orDefault(s.Queue, 1024))
	free := &sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}
	var workers sync.WaitGroup
	for range orDefault(s.Workers, 64) {
		workers.Go(func() {
			for r := range queue {
				s.work(r)
				free.Put(r.buf)
			}
		})
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err := s.read(ctx, queue, free)
	close(queue)
	workers.Wait()
	return err
}

// read queues packets until ctx ends.
func (s *Server) read(ctx context.Context, queue chan request, free *sync.Pool) error {
	var overload overload
	for {
		buf := free.Get().(*[]byte)
		n, _, err := s.conn.ReadFromUDPAddrPort(*buf)
		if ctx.Err() != nil {
			return nil
		}
		now := s.now()
		if err != nil {
			// The interface went down, or an ICMP error came back. Neither
			// ends the service; the pause keeps a lasting error from
			// taking a whole processor.
			free.Put(buf)
			s.log().Warn("dhcp: read", "interface", s.Interface, "error", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		dropped, full := push(queue, request{buf, n, now})
		if !full {
			continue
		}
		free.Put(dropped.buf)
		s.done(&Exchange{Time: dropped.received, Decision: QueueFull}, now)
		if overload.begins(now) {
			s.log().Warn("dhcp: more requests than can be answered, dropping the oldest", "interface", s.Interface)
		}
	}
}

// push puts r into the queue, and takes the oldest out when it is full. There
// is one pusher.
func push(queue chan request, r request) (dropped request, full bool) {
	for {
		select {
		case queue <- r:
			return dropped, full
		default:
		}
		select {
		case dropped = <-queue:
			full = true
		default: // a worker was faster
		}
	}
}

// work answers one packet and tells of it.
func (s *Server) work(r request) {
	x := s.answer(r)
	s.done(&x, s.now())
}

// answer answers one packet. A panic costs that packet only.
func (s *Server) answer(r request) (x Exchange) {
	defer func() {
		if err := s.caught(recover()); err != nil {
			x = Exchange{Time: r.received, Decision: Failed, Err: err}
		}
	}()
	wait := s.MaxWait
	if wait <= 0 {
		wait = 2 * time.Second
	}
	if s.now().Sub(r.received) > wait {
		return Exchange{Time: r.received, Decision: Stale}
	}
	reply, x := s.handle((*r.buf)[:r.n], r.received)
	if reply != nil {
		if err := s.send(destinationOf(reply), reply.ToBytes()); err != nil {
			x.Err = err
		}
	}
	return x
}

// caught logs what recover returned.
func (s *Server) caught(v any) error {
	if v == nil {
		return nil
	}
	s.log().Error("dhcp: panic", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
	return fmt.Errorf("panic: %v", v)
}

// handle answers the bytes of one packet. It keeps none of them.
func (s *Server) handle(b []byte, now time.Time) (*dhcpv4.DHCPv4, Exchange) {
	if len(b) >= bufferSize {
		return nil, Exchange{Time: now, Decision: Malformed, Err: fmt.Errorf("packet of %d bytes or more", len(b))}
	}
	// Some clients forget the END option, which the parser insists on. What
	// follows an END is not read, so that one more does no harm.
	req, err := dhcpv4.FromBytes(append(b, optEnd))
	if err != nil {
		return nil, Exchange{Time: now, Decision: Malformed, Err: err}
	}
	return s.Reply(req, now)
}

// done tells of an exchange.
func (s *Server) done(x *Exchange, now time.Time) {
	defer func() { _ = s.caught(recover()) }()
	x.Took = now.Sub(x.Time)
	x.log(s.log())
	if s.OnExchange != nil {
		s.OnExchange(*x)
	}
}

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

func (s *Server) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// overload tells the first drop of a series from the rest, so that it is
// logged once and not once for each packet.
type overload struct{ last time.Time }

func (o *overload) begins(now time.Time) bool {
	first := now.Sub(o.last) > 10*time.Second
	o.last = now
	return first
}
