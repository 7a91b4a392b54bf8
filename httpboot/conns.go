package httpboot

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// connLimiter bounds the connections of a server.
//
// Of one address there may be so many; as many again are accepted to be told
// that they are too many, and what comes then is closed without a word. Of all
// addresses there may be so many; a tenth more are accepted, and of those who
// ask there only firmware gets what it wants, since it takes an answer of 503
// for a reason to boot from somewhere else. What comes then waits in the
// kernel's queue.
type connLimiter struct {
	slots      chan struct{}
	total      int
	perAddress int
	log        *slog.Logger
	refused    func(Refusal)
	sending    atomic.Int32 // connections that are at a file

	mu     sync.Mutex
	open   int
	held   map[netip.Addr]int
	warned time.Time // when a refusal was last logged
}

// warnEvery keeps a client that opens connections in a loop from filling the
// log.
const warnEvery = time.Minute

func newConnLimiter(total, perAddress int, log *slog.Logger, refused func(Refusal)) *connLimiter {
	return &connLimiter{
		slots:      make(chan struct{}, total+total/10),
		total:      total,
		perAddress: perAddress,
		log:        log,
		refused:    refused,
		held:       map[netip.Addr]int{},
	}
}

// add counts a connection, and tells what is to be done with it.
func (c *connLimiter) add(addr netip.Addr) (over Refusal, closeIt bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.held[addr]++
	if n := c.held[addr]; n > c.perAddress {
		c.warn(addr)
		return RefusedAddressConns, n > 2*c.perAddress
	}
	if c.open > c.total {
		return RefusedConns, false
	}
	return "", false
}

func (c *connLimiter) warn(addr netip.Addr) {
	if now := time.Now(); now.Sub(c.warned) >= warnEvery {
		c.warned = now
		c.log.Warn("connections refused: the address has too many", "addr", addr, "max", c.perAddress)
	}
}

func (c *connLimiter) remove(addr netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.held[addr]--; c.held[addr] <= 0 {
		delete(c.held, addr)
	}
}

// listener returns l with the bound: it accepts no more while all slots are
// taken. What it accepts are [*nodeConn].
func (c *connLimiter) listener(l net.Listener, secure bool) net.Listener {
	return &limitedListener{Listener: l, c: c, secure: secure, closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	c      *connLimiter
	secure bool
	closed chan struct{}
	once   sync.Once
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		select {
		case l.c.slots <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.c.slots
			return nil, err
		}
		n := &nodeConn{Conn: conn, limiter: l.c, addr: addrOf(conn.RemoteAddr().String()), secure: l.secure}
		var refused bool
		if n.over, refused = l.c.add(n.addr); !refused {
			return n, nil
		}
		l.c.refused(n.over)
		n.Close()
	}
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// nodeConn is a connection that is counted, and that sees what package net/http
// refuses by itself, before there is a request for a handler.
//
// It passes ReadFrom through, and with it sendfile(2); package net/http finds
// it here.
type nodeConn struct {
	net.Conn
	limiter *connLimiter
	addr    netip.Addr
	secure  bool    // TLS goes over it
	over    Refusal // why it is one too many; empty when it is not
	phase   atomic.Int32
	once    sync.Once
}

// What a connection is at.
const (
	connIdle     = iota // waits for a request
	connHeader          // a request has begun
	connHandling        // a handler has it
)

// connKey is for a request's connection, in its context.
type connKey struct{}

// withConn is the ConnContext of package net/http's server.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, counted(c))
}

// counted returns the connection that a listener accepted, below TLS too.
func counted(c net.Conn) *nodeConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	n, _ := c.(*nodeConn)
	return n
}

// connState is the ConnState of package net/http's server: of all that is
// written, only what comes before the first handler, or after an answer is out,
// is its own.
func connState(c net.Conn, s http.ConnState) {
	if n := counted(c); n != nil && s == http.StateIdle {
		n.phase.Store(connIdle)
	}
}

// handling notes that a request has come to its handler. It tells whether the
// connection is one too many, and of what; a handler without listener has none.
func handling(r *http.Request) (over Refusal) {
	c, _ := r.Context().Value(connKey{}).(*nodeConn)
	if c == nil {
		return ""
	}
	c.phase.Store(connHandling)
	return c.over
}

// slowHeader answers who took too long for the header of a request. Package
// net/http would close the connection without a word.
const slowHeader = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nthe header of the request did not arrive in time\n"

func (c *nodeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.phase.CompareAndSwap(connIdle, connHeader)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && c.phase.CompareAndSwap(connHeader, connIdle) {
		c.limiter.refused(RefusedSlowHeader)
		if !c.secure {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c.Conn, slowHeader) // it may have gone
		}
	}
	return n, err
}

func (c *nodeConn) Write(b []byte) (int, error) {
	if !c.secure && c.phase.Load() == connHeader {
		c.phase.Store(connIdle)
		if reason := cannedRefusal(b); reason != "" {
			c.limiter.refused(reason)
		}
	}
	return c.Conn.Write(b)
}

// cannedRefusal tells what package net/http refuses, by its "HTTP/1.1 431 …".
func cannedRefusal(b []byte) Refusal {
	words := bytes.Fields(b[:min(len(b), 64)])
	if len(words) < 2 {
		return ""
	}
	status, _ := strconv.Atoi(string(words[1]))
	if reason := refusalOf(status); reason != "" || status < 400 {
		return reason
	}
	return RefusedMalformed // 417, 501, 505
}

func (c *nodeConn) ReadFrom(r io.Reader) (int64, error) {
	rf, ok := c.Conn.(io.ReaderFrom)
	if !ok {
		return io.Copy(struct{ io.Writer }{c.Conn}, r)
	}
	defer c.limiter.sending.Add(-1)
	if c.limiter.sending.Add(1) <= corkUpTo {
		c.cork(1)
		defer c.cork(0)
	}
	return rf.ReadFrom(r)
}

// corkUpTo is how many connections may be at a file for the next one to be
// corked. With more there is less room in each to fill, and to wait for it costs
// more than it brings: measured by make bench-boot, 32 and fewer gain and 64 lose.
const corkUpTo = 32

// cork has the kernel send full segments only (1), or what there is (0). sendfile
// hands a file on in pieces of 64 KB; each of them would go out by itself, which
// costs up to a third of the throughput.
func (c *nodeConn) cork(on int) {
	tcp, ok := c.Conn.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, on) }) // slower without, no more
	}
}

// CloseWrite is what package net/http looks for to let a client read its last
// answer.
func (c *nodeConn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return nil
}

func (c *nodeConn) Close() error {
	c.once.Do(func() {
		c.limiter.remove(c.addr)
		<-c.limiter.slots
	})
	return c.Conn.Close()
}

// addrOf returns the address of "address:port", without zone, IPv4 as IPv4.
// It returns the zero Addr for what is none.
func addrOf(hostPort string) netip.Addr {
	ap, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
