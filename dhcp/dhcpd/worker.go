package dhcpd

import (
	"cmp"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/neighbor"
)

// service is a server while it serves.
type service struct {
	server    *Server
	free      sync.Pool     // of *request
	commits   chan *pending // answers whose leases are not on disk yet
	probes    *probes
	neighbors *neighbor.Table
	relays    *relays
	senders   dhcp.Senders
	machines  dhcp.Machines
	networks  Networks
}

// maxCommits is how many answers wait for the disk at most. A disk that keeps so
// many waiting hangs.
const maxCommits = 4096

// workerTurn is how many requests a worker answers before the intake gets a turn
// on the same processor. In an overload the socket then is read in time: the
// queue puts REQUESTs first, the socket's buffer does not.
const workerTurn = 16

// pending is a reply that is ready to be sent, and its exchange.
type pending struct {
	message *dhcp.Message  // nil for silence
	to      netip.AddrPort // of a request to the boot port; else zero
	x       dhcp.Exchange
}

// work answers requests until the queue is closed and empty.
func (v *service) work() {
	for n := 1; ; n++ {
		r := v.server.queue.take()
		if r == nil {
			return
		}
		v.serve(r)
		v.free.Put(r)
		if n%workerTurn == 0 {
			runtime.Gosched()
		}
	}
}

// serve answers one packet, or passes the answer on. A panic costs that packet
// only.
func (v *service) serve(r *request) {
	x := r.Exchange(dhcp.Failed, r.received)
	defer v.server.exchanges.Rescue(&x)
	discover := r.Type == dhcpv4.MessageTypeDiscover
	switch {
	case v.server.now().Sub(r.received) > cmp.Or(v.server.MaxWait, 2*time.Second):
		x.Decision = dhcp.Stale
	case discover && !v.probes.begin(r):
		x.Decision = dhcp.Waiting
	default:
		if discover {
			defer v.probes.end(r)
		}
		v.answer(r)
		return
	}
	v.server.exchanges.Done(&x)
}

// answer sends the answer to a packet, unless the disk or the neighbours must be
// waited for: other goroutines do that.
func (v *service) answer(r *request) {
	var p pending
	if p.to = r.replyTo; p.to.IsValid() {
		p.message, p.x = v.server.ReplyBoot(&r.Request, r.received)
	} else {
		p.message, p.x = v.server.Reply(&r.Request, r.received)
	}
	switch {
	case p.message == nil:
	case !v.server.Once.claim(v.server, r):
		p.message, p.x.Reply, p.x.Decision = nil, "", dhcp.Twice
	case p.message.Wait != nil:
		later := p
		select {
		case v.commits <- &later:
			return
		default:
			p.message, p.x.Reply, p.x.Decision = nil, "", dhcp.QueueFull
		}
	case p.message.Fresh && v.probes.wants(&p) && v.probes.start(p, r.Copy(r.packet), 0):
		return
	}
	v.server.finish(&p)
}

// commit sends the answers whose leases become durable, in the order of their
// commits. Those that share a write to the disk wait for it once.
func (v *service) commit() {
	for p := range v.commits {
		v.settle(p)
	}
}

// settle sends one answer once its lease is durable. When that fails the client
// gets silence, and asks again.
func (v *service) settle(p *pending) {
	defer v.server.exchanges.Rescue(&p.x)
	if err := p.message.Wait(); err != nil {
		p.message, p.x.Reply, p.x.Decision, p.x.Err = nil, "", dhcp.NoAddress, err
	}
	v.server.finish(p)
}

// finish reports an exchange, sends its reply and logs it.
func (s *Server) finish(p *pending) {
	s.exchanges.Report(&p.x)
	if p.message != nil {
		if err := s.send(p.message, p.to); err != nil {
			p.x.Err = err
		}
	}
	s.exchanges.Log(&p.x)
}
