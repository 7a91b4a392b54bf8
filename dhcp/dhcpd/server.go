package dhcpd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"drover/dhcp"
	"drover/dhcp/neighbor"
	"drover/dhcp/recorder"
	"drover/internal/lograte"
	"drover/internal/wait"
	"drover/pools"
)

// Server answers DHCP on one interface. Set its fields, call Listen, then
// Serve. It must not be copied after that.
type Server struct {
	dhcp.Responder        // Address: the default is the interface's first IPv4 address
	Interface      string // the network interface to serve, an Ethernet

	// Machines and Networks find spoofed packets. Where one is nil, there is no
	// machine, and every address may be that of a relay agent.
	Machines dhcp.Machines
	Networks Networks

	Log        *slog.Logger        // one line for each exchange; nil: none
	OnExchange func(dhcp.Exchange) // called for each packet, dropped ones too, before its reply is sent, from several goroutines and not always in order; must not block; may be nil
	Now        func() time.Time    // the clock; nil: time.Now

	// Probe asks the wire, by ARP, for an address that is new to a machine
	// before it is offered (RFC 2131, section 4.4.1, leaves that to the
	// client; PXE ROMs do not). It delays such an OFFER by 200 ms.
	Probe bool

	// Workers is how many requests are answered at a time; default
	// GOMAXPROCS. None of them waits for the disk.
	Workers int
	// Queue is how many DISCOVERs wait for a worker, and as many of the rest;
	// default 4096: a hall that powers on at once, for a tenth of a second.
	Queue int
	// MaxWait is how long a request waits at most before it is dropped;
	// default 2 s. Clients ask again after 4 s (RFC 2131, section 4.1), and
	// PXE ROMs after 4 s as well; an answer to the first packet would then
	// only make the second wait.
	MaxWait time.Duration

	// Once is shared by servers whose interfaces may be on one wire: one of them answers a
	// packet that all receive. nil: there is no other server.
	Once *Once

	sockets
	found   bool                             // Address is that of the interface
	card    atomic.Pointer[net.HardwareAddr] // the MAC of the interface
	queue   queue
	dropped atomic.Uint32

	exchanges recorder.Recorder
	warnings  lograte.Limiter // of packets that do not count
}

// Networks has the networks that the operator declares.
type Networks interface {
	dhcp.Networks
	// Routers returns the addresses of routers and relay agents in the config.
	Routers() []netip.Addr
}

// noFarm is for a server that knows no farm.
type noFarm struct{}

// Owns returns false.
func (noFarm) Owns(netip.Addr, pools.MAC) (owned, own bool) { return false, false }

// Leased returns nil.
func (noFarm) Leased(pools.MAC) []netip.Addr { return nil }

// Routers returns nil.
func (noFarm) Routers() []netip.Addr { return nil }

// Declares returns false.
func (noFarm) Declares(pools.MAC) bool { return false }

// InSubnet returns true.
func (noFarm) InSubnet(netip.Addr) bool { return true }

// InRange returns false.
func (noFarm) InRange(netip.Addr) bool { return false }

// ListsRelay returns false.
func (noFarm) ListsRelay(netip.Addr) bool { return false }

// OneNetwork returns true.
func (noFarm) OneNetwork(link, addr netip.Addr) bool { return true }

// Depth is how many requests wait for a worker.
func (s *Server) Depth() int { return s.queue.depth() }

// Dropped is how many packets the kernel has dropped since Listen because they
// were not read in time. The next packet brings it up to date.
func (s *Server) Dropped() uint32 { return s.dropped.Load() }

// Serve answers requests until ctx ends. It returns nil when the requests that it
// has read are answered and the sockets are closed. Listen must have been called.
// No packet, however broken, ends it.
func (s *Server) Serve(ctx context.Context) error {
	if s.conn == nil {
		return errors.New("dhcp: Serve without Listen")
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, s.stopReading)
	defer stop()

	v := s.service()
	s.queue.open(cmp.Or(s.Queue, 4096))
	var intakes, workers, rest sync.WaitGroup
	for _, c := range append(s.udp(), s.observer) {
		in := newIntake(v, c)
		intakes.Go(func() { in.run(ctx) })
	}
	intakes.Go(func() { v.relays.run(ctx) })
	for range cmp.Or(s.Workers, runtime.GOMAXPROCS(0)) {
		workers.Go(v.work)
	}
	rest.Go(v.commit)
	rest.Go(func() { v.hear(ctx) })
	intakes.Wait()
	v.neighbors.Stop()
	s.queue.close()
	workers.Wait()
	close(v.commits)
	v.probes.stop()
	rest.Wait()
	return nil
}

// service returns the parts of a server that serves.
func (s *Server) service() *service {
	s.exchanges.SetUp(s.Log, s.OnExchange, s.now)
	s.warnings.Log = s.Log
	v := &service{
		server: s, commits: make(chan *pending, maxCommits), probes: newProbes(s), relays: newRelays(s),
		neighbors: &neighbor.Table{Conn: s.nearby, Log: s.log(), Now: s.now},
		machines:  s.Machines, networks: s.Networks,
	}
	if v.machines == nil {
		v.machines = noFarm{}
	}
	if v.networks == nil {
		v.networks = noFarm{}
	}
	v.senders = dhcp.Senders{Machines: v.machines, Networks: v.networks, Wire: s.wire}
	if s.Mode == pools.DHCPProxy && s.Leases != nil {
		if before, ok := s.Leases.(noting); ok { // of an earlier Serve
			s.Leases = before.Leases
		}
		s.Leases = noting{s.Leases, v}
	}
	return v
}

// pause waits after a read that went wrong: the interface went down, or an ICMP
// error came back. Neither ends the service; a lasting error must not take a
// whole processor.
func (s *Server) pause(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.readError(err)
	_ = wait.Sleep(ctx, 100*time.Millisecond)
}

func (s *Server) readError(err error) {
	s.log().Warn("dhcp: socket read failed", "interface", s.Interface, "error", err)
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
