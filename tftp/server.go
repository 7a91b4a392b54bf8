// Package tftp serves files by TFTP, read only: the loaders, and the other files that
// firmware without HTTP requests.
//
// A [Server] serves the regular files below one directory. Listen opens its
// sockets, Serve answers until its context ends. Each transfer ends in one
// [Transfer], which is logged and passed to OnTransfer.
//
// A packet goes one way. A request comes to the listener (socket_linux.go). It becomes a
// session (session.go) of a worker (worker.go), with a socket of its own, whose port the
// kernel chooses at random (poller_linux.go); the client's further packets come there.
// The session's transfer (transfer.go, with progress.go and content.go) decides what to
// send. A transfer is a state machine without a clock, a socket or a file: all three
// belong to the worker. Requests (packet.go) are answered with the options that
// both sides support (blksize, tsize, timeout and windowsize of RFC 2347, 2348,
// 2349 and 7440). Files are opened and read outside every lock, so that a slow one
// delays its own transfer only.
//
// Names come from the network. They are cleaned and opened inside the directory
// only, whatever symbolic links say (file.go).
//
// Anyone can send a request in another host's name. A client that is not served gets
// nothing. Until a client acknowledges a packet at the port of its transfer, which shows
// that it receives packets, it gets at most three times the bytes of its requests
// (credit.go). There is one exception: a client in the middle of a boot that asks without
// options gets a block of 512 bytes at once, one in a second. With [Server.SinglePort] an
// ACK shows nothing. Then only clients in the middle of a boot are served, without windows:
// each ACK in their name, also a forged one, gets one block.
//
// The number of transfers at a time is limited, in all, for one client, and for clients
// that are not known; so is the time of each. A new transfer takes the place of one whose
// client has not answered (limits.go).
//
// The package does not know which machine a client is: a TFTP request carries no
// MAC. The functions of [Server] may know it by the client's address. The package serves
// IPv4, and IPv6 when the address has a host part of it. Mode netascii (package netascii) is for
// small files: people test with clients whose default it is.
package tftp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"drover/internal/lograte"
)

// Server serves the files of a directory. Set its fields, call Listen, then
// Serve. It must not be copied after that.
type Server struct {
	Dir  string // the directory to serve; it may be missing, or be replaced while serving
	Addr string // UDP address, default ":69"
	// SinglePort sends all answers from the port of Addr, for firewalls and NAT
	// in between. By RFC 1350 a server answers from another port, and only a client
	// that receives an answer can know that port. With a single port anyone who can
	// forge a client's address can make the server send to it, block by block.
	SinglePort bool
	// Open opens the file of a cleaned name for a client; nil: the files of Dir.
	// It may take its time, and is called from several goroutines. Its error
	// wraps fs.ErrNotExist for a file that does not exist, and fs.ErrPermission
	// for one that the client must not read. An error with a method
	// ClientText() string has the text of the answer; one whose method
	// Optional() bool returns true is logged at level debug only.
	Open func(client netip.Addr, name string) (File, error)
	// Serves reports whether a client gets any answer; nil: each does.
	Serves func(client netip.Addr) bool
	// AnswersAt reports whether requests to an address of this host get an answer; nil:
	// each does.
	AnswersAt func(addr netip.Addr) bool
	// Known reports whether a client is a machine that is expected to boot; nil: each
	// is. The others share a fourth of MaxTransfers.
	Known func(client netip.Addr) bool
	// Booting reports whether a client is in the middle of a boot; nil: each is. Its
	// requests are believed to be its own as far as a client that receives nothing
	// cannot prove it: a request without options is answered at once, and with a
	// SinglePort there are answers for these clients alone.
	Booting func(client netip.Addr) bool
	// Attrs returns attributes of a transfer for the log; nil: none.
	Attrs func(Transfer) []slog.Attr

	Log        *slog.Logger   // one line for each transfer; nil: none
	OnTransfer func(Transfer) // called for each transfer that ended, from several goroutines; may be nil
	// OnDrop is called for packets that get no answer, or a late one, from several
	// goroutines. It must not block; may be nil.
	OnDrop func(why Drop, packets int)

	MaxTransfers int           // at a time, in all; default 1024
	MaxPerClient int           // at a time, from one address; default 16
	MaxTime      time.Duration // for one transfer; default 15 minutes
	StopTimeout  time.Duration // for transfers under way when Serve ends; default 5 s

	listener       socket
	workers        []*worker
	limits         *limits
	log            *slog.Logger
	served, failed *lograte.Limiter         // of log lines
	budget         lograte.Budget           // of those of known clients
	inside         func(func() error) error // runs a function that opens a socket; nil: as it is
}

// workerCount returns the number of workers. Each has a thread that sends several Gbit/s.
func workerCount() int { return min(max(1, runtime.GOMAXPROCS(0)/4), 4) }

// Listen opens the sockets.
func (s *Server) Listen() error {
	l, err := listenUDP(cmp.Or(s.Addr, ":69"), s.SinglePort)
	if err != nil {
		return fmt.Errorf("tftp: %w", err)
	}
	var pollers []poller
	for range workerCount() {
		p, err := newPoller(l, s.inside)
		if err != nil {
			for _, opened := range pollers {
				opened.Close()
			}
			l.Close()
			return fmt.Errorf("tftp: %w", err)
		}
		pollers = append(pollers, p)
	}
	s.use(l, pollers...)
	return nil
}

// use makes a worker of each poller.
func (s *Server) use(l socket, pollers ...poller) {
	s.log = cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	s.served = &lograte.Limiter{Log: s.log, PerSecond: servedLines}
	s.failed = &lograte.Limiter{Log: s.log}
	s.limits = newLimits(cmp.Or(s.MaxTransfers, 1024), cmp.Or(s.MaxPerClient, 16))
	s.listener, s.workers = l, nil
	for _, p := range pollers {
		s.workers = append(s.workers, newWorker(s, p))
	}
}

// LocalAddr returns the address of the socket that Listen opened.
func (s *Server) LocalAddr() net.Addr { return s.listener.LocalAddr() }

// Close closes the sockets of a server that does not serve. Serve does so when
// it ends.
func (s *Server) Close() error {
	s.listener.Close()
	for _, w := range s.workers {
		w.poller.Close()
	}
	return nil
}

// Serve answers requests until ctx ends. It then accepts no more of them, gives
// the transfers under way StopTimeout to finish, and returns nil. Listen must
// have been called.
func (s *Server) Serve(ctx context.Context) error {
	if len(s.workers) == 0 {
		return errors.New("tftp: Serve without Listen")
	}
	parts, running := errgroup.WithContext(ctx)
	parts.Go(s.listen)
	for _, w := range s.workers {
		parts.Go(w.run)
	}
	<-running.Done() // ctx ended, or a part failed
	idle := s.limits.close()
	select {
	case <-idle:
	case <-time.After(cmp.Or(s.StopTimeout, 5*time.Second)):
		for _, w := range s.workers {
			w.abort()
		}
		select {
		case <-idle:
		case <-time.After(time.Second): // a file that cannot be read stops nobody
		}
	}
	s.Close()
	if err := parts.Wait(); err != nil {
		return fmt.Errorf("tftp: %w", err)
	}
	return nil
}

// readPause is the time between two reads of a listener that fails: a lasting error must not
// take a whole processor.
const readPause = 100 * time.Millisecond

// listen handles requests until the listener is closed. An error of the network or of the
// kernel passes, and ends nothing.
func (s *Server) listen() error {
	in := make([]ipv4.Message, batchSize)
	for i := range in {
		in[i].Buffers, in[i].OOB = [][]byte{make([]byte, requestSize)}, make([]byte, controlSize)
	}
	lost := uint32(0)
	for {
		n, err := s.listener.ReadBatch(in, unix.MSG_WAITFORONE)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err == nil:
			now := time.Now()
			lost = s.overflowed(s.listener.lost(&in[n-1]), lost)
			for i := range in[:n] {
				s.request(in[i].Buffers[0][:in[i].N], addrPort(in[i].Addr), s.listener.origin(&in[i]), now)
			}
		case !errors.Is(err, unix.EINTR): // by which Go's runtime interrupts its threads
			if s.failed.Allow(slog.LevelWarn, "receive") {
				s.log.Warn("tftp: socket read failed, trying again", "error", err)
			}
			time.Sleep(readPause)
		}
	}
}

// addrPort is the address of a packet as the key of a session.
func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// request handles a packet if it is a request, and ignores others.
func (s *Server) request(packet []byte, client netip.AddrPort, o origin, now time.Time) {
	defer s.recover(new(error))
	if !s.answers(client, o) {
		return
	}
	r, err := parseRequest(packet)
	if err != nil {
		s.drop(Malformed, 1)
		s.log.Debug("tftp: packet dropped", "client", client.Addr(), "error", err)
		return
	}
	s.workerFor(client).begin(packet, client, o, r, now)
}

// workerFor returns the worker of a client; clients are spread over the workers.
func (s *Server) workerFor(client netip.AddrPort) *worker {
	addr := client.Addr().As16()
	return s.workers[(int(addr[15])+int(client.Port()))%len(s.workers)]
}

// most returns the largest options of a session. With a single port an ACK proves
// nothing, so its client gets no windows.
func (s *Server) most(x *session) options {
	most := options{block: s.listener.payload(x.origin) - headerSize, window: maxWindow}
	if s.SinglePort {
		most.window = 1
	}
	return most
}

// done closes the file of an ended session, once no goroutine reads it, and frees its
// limits.
func (s *Server) done(x *session) {
	defer s.limits.release(&x.ticket)
	s.report(&x.transfer, x.known)
	x.disk.Wait()
	if x.Opened != nil {
		x.Opened.Close()
	}
}

// report logs a transfer that ended, or never began, and passes it on.
func (s *Server) report(t *transfer, known bool) {
	defer s.recover(new(error))
	defer func() {
		if s.OnTransfer != nil && !t.probed {
			s.OnTransfer(t.Transfer)
		}
	}()
	kind := s.kindOf(t)
	if !s.logs(kind, t.Client, known) {
		return
	}
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
	if t.Unsent > 0 {
		log = log.With("unsent", t.Unsent)
	}
	switch kind {
	case lineProbe:
		log.Debug("tftp: size asked")
	case lineServed:
		log.Info("tftp")
	case lineOptional:
		log.Debug("tftp: file not found", "error", t.Err)
	case lineLoader:
		log.Warn("tftp: no such loader: see drover loaders", "dir", s.Dir)
	default:
		log.Warn("tftp", "error", t.Err)
	}
}

// explainHeld logs that a client gets its first block later, see [credit].
func (s *Server) explainHeld(t *transfer) {
	defer s.recover(new(error))
	if s.failed.Allow(slog.LevelWarn, lineHeld) {
		s.log.Warn("tftp: a client without options that is not in the middle of a boot waits until it has repeated its request", "file", t.File, "client", t.Client,
			"remedy", "have it ask with an option, such as busybox tftp -b 1468, atftp --option \"blksize 1468\", curl --tftp-blksize 1468")
	}
}

// The kinds of log lines of transfers.
const (
	lineProbe    = "size asked"
	lineServed   = "served"
	lineOptional = "optional file"
	lineLoader   = "no such loader"
	lineFailed   = "failed"
	lineHeld     = "held"
)

func (s *Server) kindOf(t *transfer) string {
	switch {
	case t.probed:
		return lineProbe
	case t.Err == nil:
		return lineServed
	case isOptional(t.Err):
		return lineOptional
	case errors.Is(t.Err, fs.ErrNotExist) && s.Open == nil:
		return lineLoader
	}
	return lineFailed
}

// servedLines limits the lines of transfers that went well, per second, beside the budget
// of each known client.
const servedLines = 50

// logs reports whether a line is logged. At level debug none is left out.
func (s *Server) logs(kind string, client netip.Addr, known bool) bool {
	switch kind {
	case lineProbe, lineOptional:
		return true
	case lineServed:
		return known && s.budget.Allow(client) || s.served.Allow(slog.LevelInfo, kind)
	}
	return s.failed.Allow(slog.LevelWarn, kind)
}

// recover, when deferred, logs a panic and makes it an error.
func (s *Server) recover(err *error) {
	if v := recover(); v != nil {
		s.log.Error("tftp: panic", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
		*err = &refusal{codeOther, "server failed", fmt.Errorf("panic: %v", v)}
	}
}
