// Package tftp serves files by TFTP, read only: the loaders, and the other files that
// firmware without HTTP requests.
//
// A [Server] serves the regular files below one directory. Listen opens its
// sockets, Serve answers until its context ends. Each transfer ends in one
// [Transfer], which is logged and passed to OnTransfer.
//
// A packet goes one way. A socket (socket_linux.go) receives it; the port of the
// socket (port.go) finds the session of its client; the session's transfer
// (transfer.go, with progress.go and content.go) decides what to send. A
// transfer is a state machine without a clock, a socket or a file: all three
// belong to the port. Requests (packet.go) are answered with the options that
// both sides support (blksize, tsize, timeout and windowsize of RFC 2347, 2348,
// 2349 and 7440). Files are opened and read outside every lock, so that a slow one
// delays its own transfer only.
//
// Names come from the network. They are cleaned and opened inside the directory
// only, whatever symbolic links say (file.go). The number of transfers at a time
// is limited, in all and for one client, and so is the time of each. A client that
// has not answered yet is sent one packet, so that nobody can use the server to
// flood others.
//
// The package does not know which machine a client is: a TFTP request carries no
// MAC. The Open function may know it by the client's address. The package serves
// IPv4, and IPv6 when the address has a host part of it. It converts no text:
// mode netascii is refused.
package tftp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sync/errgroup"
)

// Server serves the files of a directory. Set its fields, call Listen, then
// Serve. It must not be copied after that.
type Server struct {
	Dir  string // the directory to serve; it may be missing, or be replaced while serving
	Addr string // UDP address, default ":69"
	// SinglePort sends all answers from the port of Addr, for firewalls and NAT
	// in between. By RFC 1350 a server answers from another port.
	SinglePort bool
	// Open opens the file of a cleaned name for a client; nil: the files of Dir.
	// It may take its time, and is called from several goroutines. Its error
	// wraps fs.ErrNotExist for a file that does not exist, and fs.ErrPermission
	// for one that the client must not read. An error with a method
	// ClientText() string has the text of the answer; one whose method
	// Optional() bool returns true is logged at level debug only.
	Open func(client netip.Addr, name string) (File, error)
	// Attrs returns attributes of a transfer for the log; nil: none.
	Attrs func(Transfer) []slog.Attr

	Log        *slog.Logger   // one line for each transfer; nil: none
	OnTransfer func(Transfer) // called for each transfer that ended, from several goroutines; may be nil

	MaxTransfers int           // at a time, in all; default 1024
	MaxPerClient int           // at a time, from one address; default 16
	MaxTime      time.Duration // for one transfer; default 15 minutes
	StopTimeout  time.Duration // for transfers under way when Serve ends; default 5 s

	ports  []*port // the first listens; the others are for transfers, if there are any
	limits *limits
	log    *slog.Logger
}

// portCount returns the number of ports. Each has a thread that sends several Gbit/s. With
// fewer ports one system call serves more clients.
func portCount() int { return min(max(1, runtime.GOMAXPROCS(0)/4), 4) }

// Listen opens the sockets.
func (s *Server) Listen() error {
	addr, count := cmp.Or(s.Addr, ":69"), 1
	if !s.SinglePort {
		count += portCount()
	}
	var sockets []socket
	for range count {
		opened, err := listenUDP(addr)
		if err != nil {
			for _, o := range sockets {
				o.Close()
			}
			return fmt.Errorf("tftp: %w", err)
		}
		sockets = append(sockets, opened)
		beside := *opened.LocalAddr().(*net.UDPAddr)
		beside.Port = 0
		addr = beside.String()
	}
	s.use(sockets...)
	return nil
}

// use makes a port of each socket. A single port receives requests and transfers.
func (s *Server) use(sockets ...socket) {
	s.log = cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	s.limits = &limits{all: cmp.Or(s.MaxTransfers, 1024), perClient: cmp.Or(s.MaxPerClient, 16), client: map[netip.Addr]int{}}
	s.ports = nil
	for i, sock := range sockets {
		s.ports = append(s.ports, newPort(s, sock, i == 0))
	}
}

// LocalAddr returns the address of the socket that Listen opened.
func (s *Server) LocalAddr() net.Addr { return s.ports[0].socket.LocalAddr() }

// Close closes the sockets of a server that does not serve. Serve does so when
// it ends.
func (s *Server) Close() error {
	for _, p := range s.ports {
		p.socket.Close()
	}
	return nil
}

// Serve answers requests until ctx ends. It then accepts no more of them, gives
// the transfers under way StopTimeout to finish, and returns nil. Listen must
// have been called.
func (s *Server) Serve(ctx context.Context) error {
	if len(s.ports) == 0 {
		return errors.New("tftp: Serve without Listen")
	}
	ports, running := errgroup.WithContext(ctx)
	for _, p := range s.ports {
		ports.Go(p.run)
	}
	<-running.Done() // ctx ended, or a port failed
	idle := s.limits.close()
	select {
	case <-idle:
	case <-time.After(cmp.Or(s.StopTimeout, 5*time.Second)):
		for _, p := range s.ports {
			p.abort()
		}
		select {
		case <-idle:
		case <-time.After(time.Second): // a file that cannot be read stops nobody
		}
	}
	s.Close()
	if err := ports.Wait(); err != nil {
		return fmt.Errorf("tftp: %w", err)
	}
	return nil
}

// request handles a packet if it is a request, and ignores others.
func (s *Server) request(m *ipv4.Message, now time.Time) {
	packet, client := m.Buffers[0][:m.N], addrPort(m.Addr)
	r, err := parseRequest(packet)
	if err != nil {
		if !s.SinglePort || len(packet) < 2 || packet[1] < opData || packet[1] > opOack {
			s.log.Debug("tftp: packet dropped", "client", client.Addr(), "error", err)
		}
		return
	}
	s.portFor(client).begin(m, r, now)
}

// portFor returns the port of a client; clients are spread over the ports.
func (s *Server) portFor(client netip.AddrPort) *port {
	addr := client.Addr().As16()
	ports := s.ports[min(1, len(s.ports)-1):]
	return ports[(int(addr[15])+int(client.Port()))%len(ports)]
}

// open opens the file of a request, whose name it cleans.
func (s *Server) open(r *request, client netip.Addr) (f File, err error) {
	defer s.recover(&err)
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
	if s.Open != nil {
		f, err = s.Open(client, name)
	} else {
		f, err = openBelow(s.Dir, name)
	}
	if err != nil {
		return nil, refuseFile(err)
	}
	return f, nil
}

// read fills b from a file, which may have become shorter since it was opened.
func (s *Server) read(f File, b []byte, offset int64) (err error) {
	defer s.recover(&err)
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("file became shorter")
	}
	return &refusal{codeOther, "server cannot read the file", fmt.Errorf("byte %d: %w", offset+int64(n), err)}
}

// done closes the file of an ended session, once no goroutine reads it, and frees its
// limits.
func (s *Server) done(x *session) {
	defer s.limits.release(x.Client)
	s.report(&x.transfer)
	x.disk.Wait()
	if x.Opened != nil {
		x.Opened.Close()
	}
}

// report logs a transfer that ended, or never began, and passes it on.
func (s *Server) report(t *transfer) {
	defer s.recover(new(error))
	log := s.log.With("file", t.File, "client", t.Client, "bytes", t.Bytes, "took", t.Took)
	if s.Attrs != nil {
		log = slog.New(log.Handler().WithAttrs(s.Attrs(t.Transfer)))
	}
	if t.Window > 1 {
		log = log.With("window", t.Window)
	}
	if t.Resent > 0 {
		log = log.With("resent", t.Resent)
	}
	switch {
	case t.probed:
		log.Debug("tftp: size asked")
		return
	case t.Err == nil:
		log.Info("tftp")
	case isOptional(t.Err):
		log.Debug("tftp: file not found", "error", t.Err)
	case errors.Is(t.Err, fs.ErrNotExist) && s.Open == nil:
		log.Warn("tftp: no such loader: see drover loaders", "dir", s.Dir)
	default:
		log.Warn("tftp", "error", t.Err)
	}
	if s.OnTransfer != nil {
		s.OnTransfer(t.Transfer)
	}
}

// recover, when deferred, logs a panic and makes it an error.
func (s *Server) recover(err *error) {
	if v := recover(); v != nil {
		s.log.Error("tftp: panic", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
		*err = &refusal{codeOther, "server failed", fmt.Errorf("panic: %v", v)}
	}
}

// limits counts and limits the transfers under way.
type limits struct {
	all, perClient int // at most

	mu      sync.Mutex
	closed  bool
	total   int
	client  map[netip.Addr]int
	running sync.WaitGroup // as many as total
}

// acquire counts one more transfer. The error is the limit that it would exceed.
func (l *limits) acquire(c netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errors.New("server stops")
	case l.total >= l.all:
		return fmt.Errorf("already %d transfers", l.total)
	case l.client[c] >= l.perClient:
		return fmt.Errorf("already %d transfers to this client", l.client[c])
	}
	l.total++
	l.client[c]++
	l.running.Add(1)
	return nil
}

// release ends a transfer that acquire has counted.
func (l *limits) release(c netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.client[c]--; l.client[c] == 0 {
		delete(l.client, c)
	}
	l.running.Done()
}

// close refuses all further transfers. The returned channel is closed when no transfer is
// under way.
func (l *limits) close() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	idle := make(chan struct{})
	go func() { l.running.Wait(); close(idle) }()
	return idle
}
