package netconsole

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"drover/pools"
)

// receiveBuffer is what the kernel keeps for the listener, in bytes.
const receiveBuffer = 1 << 20

// Server receives the lines of machines. Set its fields before [Server.Listen].
type Server struct {
	Addr string // "host:port"
	Log  *Log

	// Sender returns the machine at an address, and its boot; false for a host that is none
	// or has no boot: what it sends is dropped.
	Sender func(netip.Addr) (Sender, bool)

	// OnDatagram is called for each datagram: with true if its lines were kept. nil is
	// allowed.
	OnDatagram func(kept bool)
	Errors     *slog.Logger // of the socket

	conn *net.UDPConn
}

// Sender is a machine that sends lines.
type Sender struct {
	MAC      pools.MAC
	Declared bool   // a node declares it
	Boot     string // ID of its newest boot
}

// Listen binds the socket.
func (s *Server) Listen() error {
	addr, err := net.ResolveUDPAddr("udp", s.Addr)
	if err != nil {
		return err
	}
	s.conn, err = net.ListenUDP("udp", addr)
	if err == nil {
		_ = s.conn.SetReadBuffer(receiveBuffer) // as far as the system allows
	}
	return err
}

// LocalAddr returns the address that the server listens at.
func (s *Server) LocalAddr() netip.AddrPort {
	return s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// errorPause is the time between two reads of a socket that fails.
const errorPause = time.Second

// Serve receives until ctx ends. No datagram ends it.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	buffer := make([]byte, maxDatagram)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buffer)
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			s.Errors.Warn("receiving kernel messages failed", "err", err)
			time.Sleep(errorPause)
		default:
			kept := s.receive(buffer[:n], from.Addr().Unmap(), time.Now())
			if s.OnDatagram != nil {
				s.OnDatagram(kept)
			}
		}
	}
}

// receive keeps the lines of a datagram, and reports whether it has any.
func (s *Server) receive(datagram []byte, from netip.Addr, now time.Time) bool {
	m, ok := s.Sender(from)
	if !ok {
		return false
	}
	var lines []Line
	for _, text := range Parse(datagram) {
		lines = append(lines, Line{now, m.Boot, text})
	}
	return len(lines) > 0 && s.Log.Add(m.MAC, m.Declared, now, lines...)
}
