package httpboot

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// connLimiter bounds the connections of a server. It counts by the server's
// ConnState hook: a listener that wraps connections to see them close would
// hide *net.TCPConn's ReadFrom, and with it sendfile.
type connLimiter struct {
	slots      chan struct{}
	perAddress int
	log        *slog.Logger

	mu     sync.Mutex
	held   map[netip.Addr]int
	warned time.Time // when a refusal was last logged
}

// warnEvery keeps a client that opens connections in a loop from filling the
// log.
const warnEvery = time.Minute

func newConnLimiter(total, perAddress int, log *slog.Logger) *connLimiter {
	return &connLimiter{
		slots:      make(chan struct{}, total),
		perAddress: perAddress,
		log:        log,
		held:       map[netip.Addr]int{},
	}
}

// state is the hook. Every connection that is new is closed or hijacked later,
// and nothing here hijacks.
func (c *connLimiter) state(conn net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		if addr := addrOf(conn.RemoteAddr().String()); !c.add(addr) {
			c.warn(addr)
			conn.Close()
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(addrOf(conn.RemoteAddr().String()))
		<-c.slots
	}
}

// add counts a connection, and tells whether the address may have it.
func (c *connLimiter) add(addr netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[addr]++
	return c.held[addr] <= c.perAddress
}

func (c *connLimiter) warn(addr netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.warned) >= warnEvery {
		c.warned = now
		c.log.Warn("connections refused: the address has too many", "addr", addr, "max", c.perAddress)
	}
}

func (c *connLimiter) remove(addr netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[addr]--; c.held[addr] <= 0 {
		delete(c.held, addr)
	}
}

// listener returns l with the bound: it accepts no more while all slots are
// taken.
func (c *connLimiter) listener(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, slots: c.slots, closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
	}
	return conn, err
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
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
