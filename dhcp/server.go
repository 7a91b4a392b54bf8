package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"drover/pools"
)

// Server answers DHCP on one interface. Set its fields, call Listen, then
// Serve. It must not be copied after that.
type Server struct {
	Farm      Resolver
	Leases    Leases     // may be nil when no address is leased
	Interface string     // the network interface to serve, an Ethernet
	Address   netip.Addr // server identifier and source of answers; default: the interface's first IPv4 address

	// Owner tells forged packets from others; nil: none is taken for forged.
	Owner Owner

	// Mode is full, which is the default, or proxy. A server of mode off is
	// not to be started.
	Mode pools.DHCPMode

	Log        *slog.Logger     // one line for each exchange; nil: none
	OnExchange func(Exchange)   // called for each packet, dropped ones too, from several goroutines and not always in order; may be nil
	Now        func() time.Time // the clock; nil: time.Now

	// Probe asks the wire, by ARP, for an address that is new to a machine
	// before it is offered (RFC 2131, section 4.4.1, leaves that to the
	// client; PXE ROMs do not). It delays such an OFFER by 200 ms.
	Probe bool

	// Workers is how many requests are answered at a time; default
	// GOMAXPROCS. None of them waits for the disk.
	Workers int
	// Queue is how many DISCOVERs wait for a worker, and as many of the rest;
	// default 1024.
	Queue int
	// MaxWait is how long a request waits at most before it is dropped;
	// default 2 s. Clients ask again after 4 s (RFC 2131, section 4.1), and
	// PXE ROMs after 4 s as well; an answer to the first packet would then
	// only make the second wait.
	MaxWait time.Duration

	sockets
	depth   atomic.Int64
	dropped atomic.Uint32
}

// Depth is how many requests wait for a worker.
func (s *Server) Depth() int { return int(s.depth.Load()) }

// Dropped is how many packets the kernel has dropped since Listen because we
// did not read them in time. It is brought up to date by the next packet read.
func (s *Server) Dropped() uint32 { return s.dropped.Load() }

// Serve answers requests until ctx ends, then closes the sockets and returns
// nil, when the last answer has left. Listen must have been called. No packet,
// however broken, ends it.
func (s *Server) Serve(ctx context.Context) error {
	if s.conn == nil {
		return errors.New("dhcp: Serve without Listen")
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, s.stopReading)
	defer stop()

	v := &service{Server: s, desks: make(chan *desk, 1), acks: make(chan answer, maxAcks), probes: newProbes(s)}
	v.desks <- newDesk(s)
	var workers, rest sync.WaitGroup
	for range orDefault(s.Workers, runtime.GOMAXPROCS(0)) {
		workers.Go(func() { v.work(ctx) })
	}
	rest.Go(func() { s.ack(v.acks) })
	if s.boot != nil {
		rest.Go(func() { s.serveBoot(ctx) })
	}
	if s.arp != nil {
		rest.Go(func() { v.probes.hear(ctx) })
	}
	workers.Wait()
	close(v.acks)
	v.probes.stop()
	rest.Wait()
	return nil
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
