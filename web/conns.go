package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"

	"drover/internal/lograte"
	"drover/web/answer"
	"drover/web/auth"
)

// The limits of connections at a time. A connection is anonymous until a request on it
// has the token or a session.
const (
	maxAuthenticated       = 512
	maxAnonymous           = 256
	maxAnonymousPerAddress = 128
)

// connLimiter limits the connections of the listener, so that clients without the token
// keep neither the others nor a health check from an answer.
//
// It accepts every connection. If the anonymous ones are then too many, it closes one of
// the address that has the most: an idle one if possible, and of several the oldest. So
// a flood cannot close a new connection before it has opened all of its own again, not
// even at its own address. An authenticated connection is closed only to make room for
// another one: one that is idle, or else one of the principal that has the most, for one
// that has fewer.
type connLimiter struct {
	log   *slog.Logger
	lines *lograte.Limiter

	mu            sync.Mutex
	last          uint64 // number of the last connection
	anonymous     map[*conn]bool
	authenticated map[*conn]bool
}

func newConnLimiter(log *slog.Logger) *connLimiter {
	return &connLimiter{
		log: log, lines: &lograte.Limiter{Log: log},
		anonymous: make(map[*conn]bool), authenticated: make(map[*conn]bool),
	}
}

// conn is a connection that its limiter counts.
type conn struct {
	net.Conn
	limiter *connLimiter
	client  netip.Prefix
	number  uint64 // connections are numbered as they come

	// Guarded by limiter.mu:
	principal string // of the first request with a token or a session
	idle      bool   // it waits for a request after an answer
}

func (c *conn) ofClient() netip.Prefix { return c.client }

func (c *conn) ofPrincipal() string { return c.principal }

// add counts a new connection, and makes room for it.
func (l *connLimiter) add(inner net.Conn) *conn {
	c := &conn{Conn: inner, limiter: l, client: auth.Network(inner.RemoteAddr().String())}
	if surplus := l.insert(c); surplus != nil {
		if l.lines.Allow(slog.LevelWarn, "connections") {
			l.log.Warn("connection closed: too many without the API token", "client", surplus.RemoteAddr())
		}
		_ = surplus.Close() // its client has the error
		runtime.Gosched()   // so that a request that has come is answered before the next connection
	}
	return c
}

// insert adds a connection to the anonymous ones, and returns the one to close if they
// are too many.
func (l *connLimiter) insert(c *conn) (surplus *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	c.number = l.last
	l.anonymous[c] = true
	if len(l.anonymous) > maxAnonymous || held(l.anonymous, (*conn).ofClient)[c.client] > maxAnonymousPerAddress {
		surplus = leastUseful(l.anonymous, false, (*conn).ofClient)
		delete(l.anonymous, surplus)
	}
	return surplus
}

// authenticate makes a connection an authenticated one of a principal. It reports false if
// these are too many and none of them has to make room.
func (l *connLimiter) authenticate(c *conn, principal string) bool {
	surplus, ok := l.move(c, principal)
	if surplus != nil {
		_ = surplus.Close() // its client has the error
	}
	return ok
}

// move moves a connection to the authenticated ones, and returns the one to close if
// they are too many.
func (l *connLimiter) move(c *conn, principal string) (surplus *conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.anonymous[c] { // it is authenticated, or being closed
		return nil, true
	}
	if len(l.authenticated) >= maxAuthenticated {
		if surplus = l.makeRoom(principal); surplus == nil {
			return nil, false
		}
		delete(l.authenticated, surplus)
	}
	delete(l.anonymous, c)
	l.authenticated[c], c.principal = true, principal
	return surplus, true
}

// makeRoom returns the authenticated connection to close for one of a principal; nil: none.
func (l *connLimiter) makeRoom(principal string) *conn {
	if idle := leastUseful(l.authenticated, true, (*conn).ofPrincipal); idle != nil {
		return idle
	}
	busy := leastUseful(l.authenticated, false, (*conn).ofPrincipal)
	if n := held(l.authenticated, (*conn).ofPrincipal); n[busy.principal] > n[principal]+1 {
		return busy
	}
	return nil
}

// leastUseful returns the connection to close first: of the client with the most connections
// an idle one, and of several the oldest. With onlyIdle it is nil if none is idle.
func leastUseful[K comparable](all map[*conn]bool, onlyIdle bool, client func(*conn) K) (least *conn) {
	of := held(all, client)
	idle := map[bool]int{true: 1}
	for c := range all {
		if onlyIdle && !c.idle {
			continue
		}
		if least == nil || cmp.Or(
			cmp.Compare(of[client(c)], of[client(least)]),
			cmp.Compare(idle[c.idle], idle[least.idle]),
			cmp.Compare(least.number, c.number)) > 0 {
			least = c
		}
	}
	return least
}

// held returns the number of connections of each client.
func held[K comparable](all map[*conn]bool, client func(*conn) K) map[K]int {
	n := make(map[K]int)
	for c := range all {
		n[client(c)]++
	}
	return n
}

// Close closes the connection and gives its place back.
func (c *conn) Close() error {
	l := c.limiter
	l.mu.Lock()
	delete(l.anonymous, c)
	delete(l.authenticated, c)
	l.mu.Unlock()
	return c.Conn.Close()
}

// observe is the ConnState of net/http's server.
func (l *connLimiter) observe(nc net.Conn, s http.ConnState) {
	if c := connOf(nc); c != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.idle = s == http.StateIdle
	}
}

// limitedListener accepts connections that its limiter counts.
type limitedListener struct {
	net.Listener
	limiter *connLimiter
}

func (l *limitedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.limiter.add(c), nil
}

// connOf returns the connection that a limitedListener accepted, also below TLS.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	n, _ := c.(*conn)
	return n
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// withConn is the ConnContext of net/http's server.
func (s *Server) withConn(ctx context.Context, nc net.Conn) context.Context {
	c := connOf(nc)
	if c == nil {
		return ctx
	}
	if u, ok := c.Conn.(*net.UnixConn); ok && s.Socket != nil {
		ctx = auth.WithPeer(ctx, s.Socket.peerOf(u))
	}
	return context.WithValue(ctx, connKey{}, c)
}

// countAuthenticated returns a handler that moves the connections of requests with the
// token or a session to the authenticated ones.
func (s *Server) countAuthenticated(guard *auth.Guard, next http.Handler) http.Handler {
	return answer.With(s.API.Log, func(w http.ResponseWriter, r *http.Request) error {
		c, _ := r.Context().Value(connKey{}).(*conn)
		if c == nil {
			next.ServeHTTP(w, r)
			return nil
		}
		if client, ok := guard.Client(r); ok && !c.limiter.authenticate(c, client.Principal()) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			return &answer.Error{Code: http.StatusServiceUnavailable, Msg: "too many requests at a time: try again"}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}
