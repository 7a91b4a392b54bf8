package web

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
)

// Bounds of sessions and logins.
const (
	sessionLife = 12 * time.Hour
	maxSessions = 1000

	loginBurst   = 5               // attempts of one address at once
	loginEvery   = 3 * time.Second // and one more each
	maxAddresses = 1000            // addresses whose attempts are counted apart
)

// guard knows who may do what.
type guard struct {
	token    Token
	secure   bool // cookies travel by HTTPS alone
	now      func() time.Time
	sessions *sessions
	limit    *loginLimit
}

// api lets a request through with the bearer token, or for reading with a
// session. A session cannot change anything: a browser sends cookies without
// being asked.
func (g *guard) api(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reading := r.Method == http.MethodGet || r.Method == http.MethodHead
		scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") && g.token.matches(strings.TrimSpace(secret)) || reading && g.hasSession(r) {
			next.ServeHTTP(w, r)
			return
		}
		writeFailure(w, &failure{code: http.StatusUnauthorized, msg: "the API token is wanted (Authorization: Bearer TOKEN)"})
	})
}

// cookieName is bound to the host and to HTTPS where there is HTTPS.
func (g *guard) cookieName() string {
	if g.secure {
		return "__Host-drover"
	}
	return "drover"
}

func (g *guard) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: g.cookieName(), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.secure,
	}
}

func (g *guard) hasSession(r *http.Request) bool {
	c, err := r.Cookie(g.cookieName())
	return err == nil && g.sessions.has(c.Value)
}

// sessions are the logins in force, by the hash of their cookie, so that
// looking one up tells nothing of the others.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	end map[[sha256.Size]byte]time.Time
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, end: make(map[[sha256.Size]byte]time.Time)}
}

// begin makes a session and returns its cookie.
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

// loginLimit bounds how often a client may try to log in.
type loginLimit struct {
	now    func() time.Time
	mu     sync.Mutex
	by     map[netip.Prefix]*rate.Limiter
	others *rate.Limiter // of all for which there is no room
}

func newLoginLimit(now func() time.Time) *loginLimit {
	return &loginLimit{now: now, by: make(map[netip.Prefix]*rate.Limiter), others: newLimiter()}
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(loginEvery), loginBurst) }

// allow counts an attempt of the client.
func (l *loginLimit) allow(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	who := network(r.RemoteAddr)
	lim := l.by[who]
	if lim == nil && len(l.by) >= maxAddresses {
		for other, o := range l.by {
			if o.TokensAt(now) >= loginBurst { // as good as new
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
		l.by[who] = lim
	}
	return lim.AllowN(now, 1)
}

// network is what one client can be taken to own: an IPv4 address, or the /64
// of an IPv6 address.
func network(remote string) netip.Prefix {
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
