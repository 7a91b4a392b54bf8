package httpboot

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"drover/httpboot/queue"
)

// connLimiter limits the connections of a server.
//
// Connections of one address above its limit get the answer 429; those above twice the
// limit are closed at once. Connections above the limit of the server, up to a tenth
// more, are accepted. On these, firmware still gets its files, since after a 503 it
// would boot from another device; other clients get 503. Further connections wait in the
// kernel's queue.
//
// Clients that are no machines have half of the connections, and those of networks that
// are not served a few, so that machines always have room. Above, they are closed.
type connLimiter struct {
	handler *handler // limits, log and hook
	slots   chan struct{}

	mu   sync.Mutex
	open [foreign + 1]int // by standing
	held map[netip.Addr]int
}

func newConnLimiter(h *handler) *connLimiter {
	return &connLimiter{handler: h, slots: make(chan struct{}, above(h.MaxConns)), held: map[netip.Addr]int{}}
}

// above returns the number of connections that a limit allows for a moment.
func above(limit int) int { return limit + limit/10 }

// standing is the kind of a client, for which there is a number of connections.
type standing uint8

const (
	machine  standing = iota // declared, or in the middle of a boot
	stranger                 // any other that is served
	foreign                  // one that is not served
)

// Connections at a time of all clients that are not served, and of each of them. They are
// for one short answer.
const (
	maxForeignConns           = 64
	maxForeignConnsPerAddress = 4
)

// standing returns the standing of a client.
func (l *connLimiter) standing(addr netip.Addr) standing {
	if !l.handler.serves(addr) {
		return foreign
	}
	if m, ok := l.handler.server.Scripts.At(addr); ok && l.handler.rank(m.Plan) < queue.Stranger {
		return machine
	}
	return stranger
}

// add counts a connection. It returns the limit that the connection exceeds, if any, and
// reports whether to close the connection at once.
func (l *connLimiter) add(addr netip.Addr, s standing) (over Refusal, closeIt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[s]++
	l.held[addr]++
	n, strangers := l.held[addr], l.open[stranger]
	switch {
	case s == foreign && (n > maxForeignConnsPerAddress || l.open[foreign] > maxForeignConns):
		return RefusedNetwork, true
	case n > l.handler.MaxConnsPerAddress:
		if l.handler.lines.Allow(slog.LevelWarn, string(RefusedAddressConns)) {
			l.handler.server.Log.Warn("connections refused: the address has too many", "addr", addr, "max", l.handler.MaxConnsPerAddress)
		}
		return RefusedAddressConns, n > 2*l.handler.MaxConnsPerAddress
	case s == stranger && strangers > max(1, l.handler.MaxConns/2):
		return RefusedConns, strangers > max(1, above(l.handler.MaxConns/2))
	case l.open[machine]+strangers > l.handler.MaxConns:
		return RefusedConns, false
	}
	return "", false
}

func (l *connLimiter) remove(addr netip.Addr, s standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[s]--
	if l.held[addr]--; l.held[addr] <= 0 {
		delete(l.held, addr)
	}
	<-l.slots
}

// listener returns a listener that accepts connections of inner, as [*conn], while there
// are free slots. Plain ones are not below TLS.
func (l *connLimiter) listener(inner net.Listener, plain bool) net.Listener {
	return &limitedListener{Listener: inner, limiter: l, plain: plain, closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	limiter *connLimiter
	plain   bool
	closed  chan struct{}
	once    sync.Once
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		select {
		case l.limiter.slots <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
		inner, err := l.Listener.Accept()
		if err != nil {
			<-l.limiter.slots
			return nil, err
		}
		c := &conn{tcpConn: inner.(tcpConn), limiter: l.limiter, addr: addrOf(inner.RemoteAddr().String())}
		if l.plain {
			c.empty = &emptyLines{}
		}
		c.standing = l.limiter.standing(c.addr)
		var refused bool
		if c.over, refused = l.limiter.add(c.addr, c.standing); !refused {
			return c, nil
		}
		l.limiter.handler.refused(c.over)
		c.Close()
	}
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// tcpConn has the methods of a [*net.TCPConn] that net/http and this package
// use. With ReadFrom, net/http reaches sendfile(2).
type tcpConn interface {
	net.Conn
	io.ReaderFrom
	syscall.Conn
	CloseWrite() error
}

// conn is a connection that its limiter counts.
type conn struct {
	tcpConn
	limiter  *connLimiter
	addr     netip.Addr
	standing standing
	over     Refusal     // the limit that it exceeds; empty for none
	unread   atomic.Bool // a request has begun, and its header is not read yet
	empty    *emptyLines // nil below TLS
	once     sync.Once
}

// Read reads without the empty lines before requests.
func (c *conn) Read(b []byte) (n int, err error) {
	for len(b) > 0 && n == 0 && err == nil {
		n, err = c.tcpConn.Read(b)
		if c.empty != nil {
			n = c.empty.remove(b[:n])
		}
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() { c.limiter.remove(c.addr, c.standing) })
	return c.tcpConn.Close()
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// withConn is the ConnContext of net/http's server.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(c))
}

// connOf returns the connection that a limitedListener accepted, also below TLS.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	n, _ := c.(*conn)
	return n
}

// observe is the ConnState of net/http's server. It counts a connection that ends after
// the begin of a request, but before a handler got the request: net/http refused its
// header, or the client gave up.
func (l *connLimiter) observe(nc net.Conn, s http.ConnState) {
	c := connOf(nc)
	switch {
	case s == http.StateActive:
		c.unread.Store(true)
	case s == http.StateClosed && c.unread.Load():
		l.handler.refused(RefusedHeader)
	}
}

// requested records that a request has reached its handler, and returns the limit that
// its connection exceeds.
func requested(r *http.Request) (over Refusal) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil { // a handler without a listener
		return ""
	}
	c.unread.Store(false)
	return c.over
}

// cork sets TCP_CORK: with 1 the kernel sends only full segments, with 0 all data.
func cork(r *http.Request, value int) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil {
		return
	}
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, value) }) // an error only makes the transfer slower
	}
}

// addrOf returns the address in "address:port" without its zone, IPv4 addresses as such,
// or the zero Addr for any other text.
func addrOf(hostPort string) netip.Addr {
	ap, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
