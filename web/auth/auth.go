// Package auth authenticates clients of the listener for operators, by a token, by the
// session of a browser, by a certificate, or by the unix socket that they use, and says which [Client] a request is of. The server's own token has
// the role admin; the named ones ([Tokens]) have the role that they were made with.
//
// A browser gets only the session's random cookie. No token is stored in the browser or is
// in a URL. A session has the role of the token that it began with, and ends with it. It
// changes something by the forms of the page alone, and reads no secrets.
//
// The rate of wrong tokens is limited, by address. A right token is never refused: clients
// share addresses, and one that guesses must not lock out the others. The limit keeps
// guesses out of the log; the length of the tokens keeps them from success.
//
// The package does not know the data that clients read or change.
package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"drover/pools"
	"drover/web/answer"
)

// Bounds of sessions and logins.
const (
	sessionLife = 12 * time.Hour
	maxSessions = 1000

	loginBurst   = 5               // wrong tokens of one address in a row
	loginEvery   = 3 * time.Second // interval at which one more is allowed
	maxAddresses = 1000            // addresses with a counter of their own
)

// Guard authenticates clients by a token or by a session.
type Guard struct {
	// Grants returns the roles of clients with a certificate. nil: there are none.
	Grants func() []pools.Grant

	token    Token
	tokens   *Tokens
	secure   bool // cookies are sent over HTTPS only
	sessions *sessions
	limit    *loginLimit
}

// New returns a guard without sessions. The token has the role admin; named tokens may be
// nil. If secure is true, browsers send its cookies over HTTPS only.
func New(t Token, named *Tokens, secure bool, now func() time.Time) *Guard {
	return &Guard{token: t, tokens: named, secure: secure, sessions: newSessions(now), limit: newLoginLimit(now)}
}

// Login starts a session for a client that sends a token with the role viewer at least. It
// returns an [answer.Error] with status 403, or 429 after too many wrong tokens.
func (g *Guard) Login(w http.ResponseWriter, r *http.Request, secret string) error {
	hash := sha256.Sum256([]byte(secret))
	client, ok := g.holder(r, hash)
	switch {
	case !ok && !g.limit.allow(r):
		return &answer.Error{Code: http.StatusTooManyRequests, Msg: "Too many attempts. Wait a few seconds."}
	case !ok:
		return &answer.Error{Code: http.StatusForbidden, Msg: "That is not the token."}
	case !client.Role.Includes(pools.RoleViewer):
		return &answer.Error{Code: http.StatusForbidden, Name: answer.CodeForbidden, Msg: "That token is for metrics alone."}
	}
	http.SetCookie(w, g.cookie(g.sessions.begin(hash), int(sessionLife.Seconds())))
	return nil
}

// Logout ends the session of a client.
func (g *Guard) Logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(g.cookieName()); err == nil {
		g.sessions.finish(c.Value)
	}
	http.SetCookie(w, g.cookie("", -1))
}

// ErrNoToken is the error of a request that needs a token and has none, or a wrong one.
var ErrNoToken = &answer.Error{
	Code: http.StatusUnauthorized, Msg: "the API token is required (Authorization: Bearer TOKEN)",
	Remedy: "send the header Authorization: Bearer TOKEN",
}

// API returns a handler that passes authenticated requests to next, each with its [Client].
// Browsers add cookies to requests of other sites too, so next must not let a session
// change anything.
func (g *Guard) API(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, ok := g.Client(r)
		switch {
		case ok:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, authenticated{client, g})))
		case r.Header.Get("Authorization") != "" && !g.limit.allow(r):
			w.Header().Set("Retry-After", strconv.Itoa(int(loginEvery.Seconds())))
			answer.Write(w, &answer.Error{Code: http.StatusTooManyRequests, Msg: "too many wrong tokens", Remedy: "wait a few seconds, or send the right one"})
		default:
			answer.Write(w, ErrNoToken)
		}
	})
}

// Client returns the client that a request is of; false for one without a token or a
// session in force, and not by the socket.
func (g *Guard) Client(r *http.Request) (Client, bool) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		if c, ok := g.holder(r, sha256.Sum256([]byte(strings.TrimSpace(secret)))); ok {
			return c, true
		}
	}
	if c, ok := g.peer(r); ok {
		return c, true
	}
	if c, ok := g.certified(r); ok {
		return c, true
	}
	return g.Session(r)
}

// Session returns the client with a session that a request is of.
func (g *Guard) Session(r *http.Request) (Client, bool) {
	c, err := r.Cookie(g.cookieName())
	if err != nil {
		return Client{}, false
	}
	hash, ok := g.sessions.of(c.Value)
	if !ok {
		return Client{}, false
	}
	client, ok := g.holder(r, hash)
	client.Session = true
	return client, ok
}

// holder returns the client that has the token with a hash.
func (g *Guard) holder(r *http.Request, hash digest) (Client, bool) {
	if g.token.matches(hash) {
		return Client{Role: pools.RoleAdmin, Address: r.RemoteAddr}, true
	}
	n, ok := g.tokens.of(hash)
	return Client{Name: n.Name, Role: n.Role, Pools: n.Pools, Address: r.RemoteAddr}, ok
}

// cookieName returns the name of the session cookie. With HTTPS its prefix binds the
// cookie to the host and to HTTPS.
func (g *Guard) cookieName() string {
	if g.secure {
		return "__Host-drover"
	}
	return "drover"
}

func (g *Guard) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: g.cookieName(), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.secure,
	}
}

// session is a session of a browser.
type session struct {
	end   time.Time
	token digest // of the token that it began with
}

// sessions holds the sessions in force, by the hash of their cookies. With hashes, the time
// of a look-up reveals nothing about other cookies.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	all map[digest]session
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: make(map[digest]session)}
}

// begin starts a session for the holder of a token, and returns its cookie. If there are
// too many sessions, it ends the oldest.
func (s *sessions) begin(token digest) string {
	cookie := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var first digest
	for id, other := range s.all {
		if !now.Before(other.end) {
			delete(s.all, id)
		} else if f, ok := s.all[first]; !ok || other.end.Before(f.end) {
			first = id
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, first)
	}
	s.all[sha256.Sum256([]byte(cookie))] = session{now.Add(sessionLife), token}
	return cookie
}

// of returns the hash of the token that a session began with; false for a session that is
// not in force.
func (s *sessions) of(cookie string) (token digest, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.all[sha256.Sum256([]byte(cookie))]
	return found.token, ok && s.now().Before(found.end)
}

func (s *sessions) finish(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(cookie)))
}

// loginLimit limits the rate of wrong tokens of each client.
type loginLimit struct {
	now    func() time.Time
	mu     sync.Mutex
	by     map[netip.Prefix]*rate.Limiter
	others *rate.Limiter // shared by clients beyond maxAddresses
}

func newLoginLimit(now func() time.Time) *loginLimit {
	return &loginLimit{now: now, by: make(map[netip.Prefix]*rate.Limiter), others: newLimiter()}
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(loginEvery), loginBurst) }

// allow counts a wrong token of the client, and reports whether it is within the limit.
func (l *loginLimit) allow(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	client := Network(r.RemoteAddr)
	lim := l.by[client]
	if lim == nil && len(l.by) >= maxAddresses {
		for other, o := range l.by {
			if o.TokensAt(now) >= loginBurst { // the same as a new limiter
				delete(l.by, other)
			}
		}
	}
	switch {
	case lim != nil:
	case len(l.by) >= maxAddresses:
		lim = l.others
	default:
		lim = newLimiter()
		l.by[client] = lim
	}
	return lim.AllowN(now, 1)
}

// Network returns the addresses that count as one client: the IPv4 address in
// "address:port", or the /64 of an IPv6 address.
func Network(remote string) netip.Prefix {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return p
}
