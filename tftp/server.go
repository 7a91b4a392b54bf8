// Package tftp serves the loaders to firmware that speaks no HTTP.
//
// A [Server] serves the regular files below one directory, for reading only.
// Listen opens its socket, Serve answers until its context ends. Each transfer
// ends in one [Transfer], which is logged and handed to whoever counts.
//
// Names come from the network. They are cleaned (path.go) and opened inside
// the directory only, whatever symbolic links say. How many transfers run at a
// time is bounded, in all and for one client (limits.go), and so is how long
// one takes.
//
// The protocol (RFC 1350, options blksize and tsize of RFC 2348 and 2349) is
// that of github.com/pin/tftp. It has no windowsize (RFC 7440): a client that
// asks for it gets one block at a time.
//
// The package does not know whose machine asks: a TFTP request carries no MAC,
// and all of one kind load the same file. It serves IPv4; an address with a
// host part can be IPv6.
package tftp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/pin/tftp/v3"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// Server serves the files of a directory. Set its fields, call Listen, then
// Serve. It must not be copied after that.
type Server struct {
	Dir  string // what is served; it may be missing, or replaced while serving
	Addr string // UDP address, default ":69"

	Log        *slog.Logger   // one line for each transfer; nil: none
	OnTransfer func(Transfer) // called for each transfer that ended, from several goroutines; may be nil

	MaxTransfers int           // at a time, in all; default 1024
	MaxPerClient int           // at a time, from one address; default 16
	MaxTime      time.Duration // for one transfer; default 15 minutes
	Grace        time.Duration // for transfers under way when Serve ends; default 5 s

	conn   net.PacketConn
	limits *limits
}

// Transfer is a file that was sent, or refused.
type Transfer struct {
	File   string // as cleaned, or as asked for when it was refused
	Client netip.Addr
	Bytes  int64
	Took   time.Duration
	Err    error // why it did not reach the client whole; nil when it did
}

// Firmware waits a second or two for each packet; the library's default of 5 s
// would leave a lost one unsent until the client has given up.
const resendAfter = time.Second

// Listen opens the socket.
func (s *Server) Listen() error {
	addr := s.Addr
	if addr == "" {
		addr = ":69"
	}
	network := "udp"
	if strings.HasPrefix(addr, ":") {
		// On a socket for both families the library takes IPv6's longer
		// header off the block size: 1452 instead of the 1468 that firmware
		// asks for.
		network = "udp4"
	}
	conn, err := net.ListenPacket(network, addr)
	if err != nil {
		return fmt.Errorf("tftp: %w", err)
	}
	if err := reportInterface(conn); err != nil {
		conn.Close()
		return fmt.Errorf("tftp: %w", err)
	}
	s.conn = conn
	return nil
}

// reportInterface makes the kernel say which interface a packet came in by:
// the library fits the block size to that interface's MTU. It asks for it
// itself, but only in Serve; what came before would be served in blocks of 512
// bytes.
func reportInterface(conn net.PacketConn) error {
	if addr, err := netip.ParseAddrPort(conn.LocalAddr().String()); err == nil && addr.Addr().Is4() {
		return ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	}
	return ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
}

// LocalAddr is the address of the socket that Listen opened.
func (s *Server) LocalAddr() net.Addr { return s.conn.LocalAddr() }

// Close closes the socket. Serve does so when it ends.
func (s *Server) Close() error {
	if s.conn == nil {
		return nil
	}
	return s.conn.Close()
}

// Serve answers requests until ctx ends. It then takes no more of them, gives
// the transfers under way the time Grace to finish, and returns nil. Listen
// must have been called.
func (s *Server) Serve(ctx context.Context) error {
	if s.conn == nil {
		return errors.New("tftp: Serve without Listen")
	}
	defer s.conn.Close()
	s.limits = newLimits(orDefault(s.MaxTransfers, 1024), orDefault(s.MaxPerClient, 16))

	transfers, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	abort := func() { cancel(errStopped) }
	defer abort()
	srv := s.protocol(transfers)
	stopped := make(chan struct{})
	shutdown := func() {
		defer close(stopped)
		defer time.AfterFunc(orDefault(s.Grace, 5*time.Second), abort).Stop()
		srv.Shutdown()
	}
	stop := context.AfterFunc(ctx, shutdown)
	err := srv.Serve(s.conn)
	if stop() { // it ended by itself
		shutdown()
	}
	<-stopped
	if err != nil {
		return fmt.Errorf("tftp: %w", err)
	}
	return nil
}

func (s *Server) protocol(ctx context.Context) *tftp.Server {
	srv := tftp.NewServer(s.reader(ctx), s.refuseWrite)
	srv.SetTimeout(resendAfter)
	srv.SetBackoff(func(int) time.Duration { return 0 })
	srv.SetHook(hook{s})
	return srv
}

// hook hears of requests that never become a transfer.
type hook struct{ s *Server }

// OnSuccess does nothing: the handlers tell of transfers.
func (hook) OnSuccess(tftp.TransferStats) {}

// OnFailure logs what went wrong before a handler was called: the machine has
// no more sockets, or, at any rate that anybody likes, the packet is no
// request.
func (h hook) OnFailure(stats tftp.TransferStats, err error) {
	if stats.Filename != "" {
		return
	}
	level := slog.LevelDebug
	if _, local := errors.AsType[*net.OpError](err); local {
		level = slog.LevelWarn
	}
	h.s.log().Log(context.Background(), level, "tftp: request dropped", "error", err)
}

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
