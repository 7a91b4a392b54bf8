// Package auth authenticates clients of the listener for operators: by the API token or
// by the session of a browser.
//
// A browser gets only the session's random cookie. The token is not stored in the
// browser and is in no URL. A session is enough for reading; every change needs the
// token, and so does every answer that contains a secret.
//
// The rate of wrong tokens is limited, by address. The right token is never refused:
// clients share addresses, and one that guesses must not lock out the others. The limit
// keeps guesses out of the log; the length of the token keeps them from success.
//
// The package does not know the data that clients read or change.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

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

// Guard authenticates clients by the API token or by a session.
type Guard struct {
	token    Token
	secure   bool // cookies are sent over HTTPS only
	sessions *sessions
	limit    *loginLimit
}

// New returns a guard without sessions. If secure is true, browsers send its cookies
// over HTTPS only.
func New(t Token, secure bool, now func() time.Time) *Guard {
	return &Guard{token: t, secure: secure, sessions: newSessions(now), limit: newLoginLimit(now)}
}

// Login starts a session for a client that sends the API token. Its errors are those of
// [Guard.Confirm].
func (g *Guard) Login(w http.ResponseWriter, r *http.Request, token string) error {
	if err := g.Confirm(r, token); err != nil {
		return err
	}
	http.SetCookie(w, g.cookie(g.sessions.begin(), int(sessionLife.Seconds())))
	return nil
}

// Logout ends the session of a client.
func (g *Guard) Logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(g.cookieName()); err == nil {
		g.sessions.finish(c.Value)
	}
	http.SetCookie(w, g.cookie("", -1))
}

// Confirm checks the API token in a form of the page. It returns an [answer.Error] with
// status 403, or 429 after too many wrong tokens.
func (g *Guard) Confirm(r *http.Request, token string) error {
	switch {
	case g.token.matches(token):
		return nil
	case !g.limit.allow(r):
		return &answer.Error{Code: http.StatusTooManyRequests, Msg: "Too many attempts. Wait a few seconds."}
	}
	return &answer.Error{Code: http.StatusForbidden, Msg: "That is not the token."}
}

// API returns a handler that passes authenticated requests to next: those with the
// bearer token, and reading requests with a session. A session cannot change anything,
// because browsers add cookies to requests of other sites too.
func (g *Guard) API(next http.Handler) http.Handler {
	return g.require(next, func(r *http.Request) bool {
		reading := r.Method == http.MethodGet || r.Method == http.MethodHead
		return reading && g.HasSession(r)
	})
}

// Secret returns a handler that passes requests with the bearer token to next. The
// answer of next contains a secret, which a stolen session must not read.
func (g *Guard) Secret(next http.Handler) http.Handler {
	return g.require(next, func(*http.Request) bool { return false })
}

// require returns a handler that passes requests to next that have the bearer token, or
// that other allows.
func (g *Guard) require(next http.Handler, other func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.hasToken(r) || other(r) {
			next.ServeHTTP(w, r)
			return
		}
		answer.Write(w, &answer.Error{Code: http.StatusUnauthorized, Msg: "the API token is required (Authorization: Bearer TOKEN)"})
	})
}

// Knows reports whether a request has the bearer token or a session.
func (g *Guard) Knows(r *http.Request) bool { return g.hasToken(r) || g.HasSession(r) }

func (g *Guard) hasToken(r *http.Request) bool {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && g.token.matches(strings.TrimSpace(secret))
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

// HasSession reports whether a request has the cookie of a session in force.
func (g *Guard) HasSession(r *http.Request) bool {
	c, err := r.Cookie(g.cookieName())
	return err == nil && g.sessions.has(c.Value)
}

// sessions holds the ends of the sessions in force, by the hash of their cookies. With
// hashes, the time of a look-up reveals nothing about other cookies.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	end map[[sha256.Size]byte]time.Time
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, end: make(map[[sha256.Size]byte]time.Time)}
}

// begin starts a session and returns its cookie. If there are too many sessions, it ends
// the oldest.
func (s *sessions) begin() string {
	cookie := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var first [sha256.Size]byte
	for id, end := range s.end {
		if !now.Before(end) {
			delete(s.end, id)
		} else if e, ok := s.end[first]; !ok || end.Before(e) {
			first = id
		}
	}
	if len(s.end) >= maxSessions {
		delete(s.end, first)
	}
	s.end[sha256.Sum256([]byte(cookie))] = now.Add(sessionLife)
	return cookie
}

func (s *sessions) has(cookie string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.end[sha256.Sum256([]byte(cookie))]
	return ok && s.now().Before(end)
}

func (s *sessions) finish(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.end, sha256.Sum256([]byte(cookie)))
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
