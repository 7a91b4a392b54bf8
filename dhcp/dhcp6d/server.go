package dhcp6d

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"drover/dhcp"
	"drover/dhcp/dhcp6"
	"drover/dhcp/neighbor"
	"drover/dhcp/ratelimit"
	"drover/dhcp/recorder"
	"drover/internal/lograte"
	"drover/internal/wait"
)

// Server answers DHCPv6 on one interface. Set its fields, call Listen, then Serve. It must
// not be copied after that.
type Server struct {
	dhcp6.Responder
	Interface string // the network interface to serve, an Ethernet

	Machines dhcp.Machines
	Networks Networks

	Log        *slog.Logger        // one line for each exchange; nil: none
	OnExchange func(dhcp.Exchange) // called for each packet, dropped ones too, before its reply is sent, from several goroutines; must not block; may be nil
	Now        func() time.Time    // the clock; nil: time.Now

	sockets   *sockets
	neighbors *neighbor.Table
	relays    relays

	known, strangers lane
	commits          chan *pending
	free             sync.Pool // of *request

	exchanges recorder.Recorder
	warnings  lograte.Limiter // of packets that do not count
}

// Networks has the networks that the operator declares.
type Networks interface {
	dhcp.Networks
	// Routers returns the addresses of routers and relay agents in the config.
	Routers() []netip.Addr
}

const (
	maxCommits = 4096 // answers that wait for the disk
	maxWait    = 2 * time.Second
)

// The limits of one client, and of one port of a relay agent: see package dhcpd.
const (
	clientBurst, portBurst       = 20, 2000
	clientInterval, portInterval = 200 * time.Millisecond, 5 * time.Millisecond
)

// request is a packet that waits for a worker.
type request struct {
	dhcp6.Request
	own      netip.Addr // an address of this server on the wire
	received time.Time
	packet   []byte // own memory, that the next packet uses again: few are as long as a buffer must be
}

// pending is a reply that is ready to be sent, and its exchange.
type pending struct {
	message *dhcp6.Message // nil for silence
	to      netip.Addr
	x       dhcp.Exchange
}

// Listen opens the sockets. It needs CAP_NET_BIND_SERVICE and CAP_NET_RAW. It may be called
// again when Serve has returned.
func (s *Server) Listen() (err error) {
	if s.sockets, err = open(s.Interface); err != nil {
		return fmt.Errorf("dhcpv6 on %q: %w", s.Interface, err)
	}
	return nil
}

// Changed reports whether the sockets do not fit the interface any more: it is gone,
// another one has its name, or its addresses or its MAC are others. Serve must then end,
// and Listen be called again. Changed must not be called during Listen.
func (s *Server) Changed() bool { return !s.sockets.isCurrent() }

// Serve answers requests until ctx ends. Listen must have been called. It returns nil when
// the requests that it has read are answered. No packet, however broken, ends it.
func (s *Server) Serve(ctx context.Context) error {
	s.exchanges.SetUp(s.Log, s.OnExchange, s.now)
	s.warnings.Log = s.Log
	s.known, s.strangers = newLane(), newLane()
	s.commits = make(chan *pending, maxCommits)
	stop := make(chan struct{})
	var workers, rest sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { s.work(stop) })
	}
	s.neighbors = &neighbor.Table{Conn: s.sockets.nearby, Log: s.log(), Now: s.now}
	rest.Go(s.commit)
	rest.Go(func() { s.sockets.nearby.Hear(ctx, s.neighbors.Seen, s.readError) })
	defer context.AfterFunc(ctx, s.sockets.stopReading)()
	s.read(ctx)
	s.neighbors.Stop()
	close(stop)
	workers.Wait()
	close(s.commits)
	rest.Wait()
	s.sockets.close()
	return nil
}

// read reads packets until ctx ends.
func (s *Server) read(ctx context.Context) {
	in := &intake{
		server: s, senders: dhcp6.Senders{Machines: s.Machines, Networks: s.Networks, Wire: s.sockets.wire()}, seed: maphash.MakeSeed(),
		clients: ratelimit.New(s.now(), 1<<17, clientBurst, clientInterval), ports: ratelimit.New(s.now(), 1<<12, portBurst, portInterval),
	}
	defer in.shedding.Wait() // it uses the sockets, which the next Listen replaces
	in.shedder.Set = s.sockets.pass
	in.setAddresses()
	for i := range in.slots {
		in.batch.set(i, in.buffers[i][:])
		in.renew(i)
	}
	for ctx.Err() == nil {
		if err := in.run(ctx); err != nil && ctx.Err() == nil {
			s.readError(err)
			_ = wait.Sleep(ctx, 100*time.Millisecond)
		}
	}
}

func (s *Server) readError(err error) {
	s.log().Warn("dhcpv6: socket read failed", "interface", s.Interface, "error", err)
}

// work answers requests until stop is closed and the queues are empty.
func (s *Server) work(stop <-chan struct{}) {
	for n := 1; ; n++ {
		r := take(s.order(n), stop)
		if r == nil {
			return
		}
		s.serve(r)
		s.free.Put(r)
	}
}

// serve answers one packet. A panic costs that packet only.
func (s *Server) serve(r *request) {
	x := r.Exchange(dhcp.Failed, r.received)
	defer s.exchanges.Rescue(&x)
	if s.now().Sub(r.received) > maxWait {
		x.Decision = dhcp.Stale
		s.exchanges.Done(&x)
		return
	}
	p := pending{to: r.From.Addr}
	p.message, p.x = s.Reply(&r.Request, r.own, r.received)
	if p.message != nil && p.message.Wait != nil {
		later := p
		select {
		case s.commits <- &later:
			return
		default:
			p.message, p.x.Reply, p.x.Decision = nil, "", dhcp.QueueFull
		}
	}
	s.finish(&p)
}

// commit sends the answers whose leases become durable, in the order of their commits.
func (s *Server) commit() {
	for p := range s.commits {
		s.settle(p)
	}
}

// settle sends one answer once its lease is durable. When that fails the client gets
// silence, and asks again.
func (s *Server) settle(p *pending) {
	defer s.exchanges.Rescue(&p.x)
	if err := p.message.Wait(); err != nil {
		p.message, p.x.Reply, p.x.Decision, p.x.Err = nil, "", dhcp.NoAddress, err
	}
	s.finish(p)
}

// finish reports an exchange, sends its reply and logs it.
func (s *Server) finish(p *pending) {
	s.exchanges.Report(&p.x)
	if p.message != nil {
		if err := s.sockets.write(p.message.Bytes, netip.AddrPortFrom(p.to, p.message.Port)); err != nil {
			p.x.Err = err
		}
	}
	s.exchanges.Log(&p.x)
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
