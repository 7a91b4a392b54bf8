// Package tftp serves the loaders, and whatever else firmware without HTTP
// asks for.
//
// A [Server] serves the regular files below one directory, for reading only.
// Listen opens its sockets, Serve answers until its context ends. Each transfer
// ends in one [Transfer], which is logged and handed to whoever counts.
//
// A request (packet.go) is answered with the options that both sides speak
// (options.go: blksize, tsize, timeout and windowsize of RFC 2347, 2348, 2349
// and 7440). How far a file has come is arithmetic without a clock or a socket
// (progress.go). A port (port.go) is a socket (socket_linux.go) with the
// transfers that go through it.
//
// Names come from the network. They are cleaned (path.go) and opened inside
// the directory only, whatever symbolic links say (file.go). How many transfers
// run at a time is bounded, in all and for one client (limits.go), and so is
// how long one takes. A client that has not answered yet is sent one packet, so
// that nobody can make us flood somebody else.
//
// The package does not know whose machine asks: a TFTP request carries no MAC.
// Who opens the files instead may know, by the client's address (Open).
// It serves IPv4; an address with a host part can be IPv6. Text is served as it
// is on disk: mode netascii is refused.
package tftp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Server serves the files of a directory. Set its fields, call Listen, then
// Serve. It must not be copied after that.
type Server struct {
	Dir  string // what is served; it may be missing, or replaced while serving
	Addr string // UDP address, default ":69"
	// SinglePort answers from the port that is asked, as firewalls and NAT
	// like it; RFC 1350 answers from another one.
	SinglePort bool
	// Open opens what a client may read, by its cleaned name; nil: the files of
	// Dir. Its error wraps fs.ErrNotExist for what there is not, and
	// fs.ErrPermission for what the client may not have. With a method Tell()
	// string it says what the client is told, and with Optional() bool that
	// nobody need worry.
	Open func(client netip.Addr, name string) (File, error)
	// Who adds to the log whose machine a client is; it may be nil.
	Who func(client netip.Addr) []slog.Attr

	Log        *slog.Logger   // one line for each transfer; nil: none
	OnTransfer func(Transfer) // called for each transfer that ended, from several goroutines; may be nil

	MaxTransfers int           // at a time, in all; default 1024
	MaxPerClient int           // at a time, from one address; default 16
	MaxTime      time.Duration // for one transfer; default 15 minutes
	Grace        time.Duration // for transfers under way when Serve ends; default 5 s

	listener *port
	ports    []*port // for transfers; the listener alone with SinglePort
	limits   *limits
	pages    sync.Pool // of *page
}

// portCount is how many ports transfers go through. Each is a thread, and one
// has several Gbit/s in it; the fewer there are, the more clients one call to
// the kernel serves.
func portCount() int { return min(max(1, runtime.GOMAXPROCS(0)/4), 4) }

// Listen opens the sockets.
func (s *Server) Listen() error {
	addr := s.Addr
	if addr == "" {
		addr = ":69"
	}
	first, err := listenUDP(addr)
	if err != nil {
		return fmt.Errorf("tftp: %w", err)
	}
	if err := first.tellPlace(); err != nil {
		first.close()
		return fmt.Errorf("tftp: %w", err)
	}
	var others []socket
	for range portCount() {
		if s.SinglePort {
			break
		}
		other, err := first.beside()
		if err != nil {
			for _, o := range append(others, first) {
				o.close()
			}
			return fmt.Errorf("tftp: a port for transfers: %w", err)
		}
		others = append(others, other)
	}
	s.use(first, others...)
	return nil
}

// use makes the ports. Without others the first one is for everything.
func (s *Server) use(first socket, others ...socket) {
	s.listener, s.ports = newPort(s, first, true), nil
	for _, o := range others {
		s.ports = append(s.ports, newPort(s, o, false))
	}
	if len(others) == 0 {
		s.ports = []*port{s.listener}
	}
	s.limits = newLimits(orDefault(s.MaxTransfers, 1024), orDefault(s.MaxPerClient, 16))
}

// all is every port, once.
func (s *Server) all() []*port {
	if s.listener == nil || s.ports[0] == s.listener {
		return s.ports
	}
	return append([]*port{s.listener}, s.ports...)
}

// LocalAddr is the address of the socket that Listen opened.
func (s *Server) LocalAddr() net.Addr { return s.listener.socket.addr() }

// Close closes the sockets of a server that does not serve. Serve does so when
// it ends.
func (s *Server) Close() error {
	for _, p := range s.all() {
		p.socket.close()
	}
	return nil
}

// Serve answers requests until ctx ends. It then takes no more of them, gives
// the transfers under way the time Grace to finish, and returns nil. Listen
// must have been called.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		return errors.New("tftp: Serve without Listen")
	}
	defer s.Close()
	ports, running := errgroup.WithContext(ctx)
	for _, p := range s.all() {
		ports.Go(p.run)
	}
	<-running.Done() // ctx ended, or a port failed
	s.limits.close()
	select {
	case <-s.limits.idle:
	case <-time.After(orDefault(s.Grace, 5*time.Second)):
		for _, p := range s.all() {
			p.abort(errStopped)
		}
		<-s.limits.idle
	}
	for _, p := range s.all() {
		p.stop()
	}
	if err := ports.Wait(); err != nil {
		return fmt.Errorf("tftp: %w", err)
	}
	return nil
}

// request takes a packet that is a request, and leaves the others.
func (s *Server) request(m *message, now time.Time) {
	r, err := parseRequest(m.data)
	if err != nil {
		if !s.SinglePort || len(m.data) < 2 || !isTransfers(binary.BigEndian.Uint16(m.data)) {
			s.log().Debug("tftp: packet dropped", "client", m.peer.Addr(), "error", err)
		}
		return
	}
	p := s.portFor(m.peer)
	switch t, err := p.begin(m, r, now); {
	case err != nil:
		t.end(err, now)
		s.tell(t)
	case t != nil:
		go s.open(p, t, r)
	}
}

// isTransfers tells whether a packet is one of a transfer under way.
func isTransfers(op uint16) bool { return op >= opData && op <= opOack }

// portFor spreads the clients over the ports; each has one.
func (s *Server) portFor(client netip.AddrPort) *port {
	addr := client.Addr().As16()
	return s.ports[(int(addr[15])+int(client.Port()))%len(s.ports)]
}

// open opens the file that a request asks for.
func (s *Server) open(p *port, t *transfer, r request) {
	f, err := s.find(&r, t.Client)
	p.start(t, r, f, err)
}

// find cleans the name in the request and opens the file.
func (s *Server) find(r *request, client netip.Addr) (f File, err error) {
	defer func() {
		if p := s.caught(recover()); p != nil {
			err = &refusal{codeOther, "server failed", p}
		}
	}()
	switch {
	case r.write:
		return nil, refuse(codeAccess, "server is read-only")
	case !strings.EqualFold(r.mode, "octet"):
		return nil, &refusal{codeIllegal, "only mode octet (binary) is served", fmt.Errorf("mode %q: only octet is served", r.mode)}
	}
	name, err := clean(r.file)
	if err != nil {
		return nil, &refusal{codeAccess, "bad file name", err}
	}
	r.file = name
	open := s.Open
	if open == nil {
		open = func(_ netip.Addr, name string) (File, error) { return openBelow(s.Dir, name) }
	}
	if f, err = open(client, name); err != nil {
		return nil, refuseFile(err)
	}
	return f, nil
}

// page returns one that holds nothing.
func (s *Server) page() *page {
	if p, ok := s.pages.Get().(*page); ok {
		p.n = 0
		return p
	}
	return new(page)
}

// caught logs what recover returned.
func (s *Server) caught(v any) error {
	if v == nil {
		return nil
	}
	s.log().Error("tftp: panic", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
	return fmt.Errorf("panic: %v", v)
}

func (s *Server) maxTime() time.Duration { return orDefault(s.MaxTime, 15*time.Minute) }

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

func orDefault[T ~int | ~int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}
