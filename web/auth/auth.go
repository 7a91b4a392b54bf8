// Package auth authenticates clients of the listener for operators, by a token, by the
// session of a browser, by a certificate, or by the unix socket that they use, and says which
// [Client] a request is of. The server's own token has the role admin; the named ones
// ([Tokens]) have the role that they were made with.
//
// A browser gets only the session's random cookie. No token is stored in the browser or is
// in a URL. A session begins with a token, with a certificate, or with a login at a provider of
// OpenID Connect (web/auth/oidc). It has the role of that, and ends when that has none any more.
// It changes something by the forms of the page alone, and reads no secrets.
//
// The rate of wrong tokens is limited, by address. A right token is never refused: clients
// share addresses, and one that guesses must not lock out the others. The limit keeps
// guesses out of the log; the length of the tokens keeps them from success.
//
// The package does not know the data that clients read or change.
package auth

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"time"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth/oidc"
)

// Guard authenticates clients by a token or by a session.
type Guard struct {
	// Grants returns the roles of clients with a certificate. nil: there are none.
	Grants func() []pools.Grant
	// Provider is where people log in to the page. nil: with a token alone.
	Provider *oidc.Provider
	// Groups returns the roles of the provider's groups.
	Groups func() []pools.Grant

	token    Token
	tokens   *Tokens
	now      func() time.Time
	secure   bool // cookies are sent over HTTPS only
	sessions *sessions
	limit    *loginLimit
	refused  *loginLimit // of logins at the provider
}

// New returns a guard without sessions. The token has the role admin; named tokens may be
// nil. If secure is true, browsers send its cookies over HTTPS only.
func New(t Token, named *Tokens, secure bool, now func() time.Time) *Guard {
	return &Guard{token: t, tokens: named, now: now, secure: secure, sessions: newSessions(now), limit: newLoginLimit(now), refused: newLoginLimit(now)}
}

// Login starts a session for a client that sends a token with the role viewer at least. It
// returns an [answer.Error] with status 403, or 429 after too many wrong tokens.
func (g *Guard) Login(w http.ResponseWriter, r *http.Request, secret string) (Client, error) {
	hash := sha256.Sum256([]byte(secret))
	client, ok := g.holder(r, hash)
	switch {
	case !ok && !g.limit.allow(r):
		return client, &answer.Error{Code: http.StatusTooManyRequests, Msg: "Too many attempts. Wait a few seconds."}
	case !ok:
		return client, &answer.Error{Code: http.StatusForbidden, Msg: "That is not the token."}
	case !client.Role.Includes(pools.RoleViewer):
		return client, &answer.Error{Code: http.StatusForbidden, Name: answer.CodeForbidden, Msg: "That token is for metrics alone."}
	}
	g.begin(w, session{of: client.Principal(), token: hash})
	client.Session = true
	return client, nil
}

// begin starts a session.
func (g *Guard) begin(w http.ResponseWriter, s session) {
	http.SetCookie(w, g.cookie(g.sessions.begin(s), int(sessionLife.Seconds())))
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
	found, ok := g.sessions.of(c.Value)
	if !ok {
		return Client{}, false
	}
	var client Client
	if found.person != nil {
		client, ok = g.of(r, found.person)
		ok = ok && client.Role.Includes(pools.RoleViewer)
	} else {
		client, ok = g.holder(r, found.token)
	}
	client.Session = true
	return client, ok
}

// SessionID returns what tells the session of a request from others, and is no secret.
func (g *Guard) SessionID(r *http.Request) string {
	c, err := r.Cookie(g.cookieName())
	if err != nil {
		return ""
	}
	id := sha256.Sum256([]byte(c.Value))
	return string(id[:])
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
