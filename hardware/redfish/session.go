package redfish

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// session is the login of a client at a Redfish service. Some services refuse HTTP Basic, and some
// have no sessions: the client opens a session where the service links to them, and falls back to Basic.
type session struct {
	mu      sync.Mutex
	decided bool
	linked  bool   // the service links to its sessions
	token   string // empty: HTTP Basic
	at      string // path of the session, to delete it
	refused error  // the login, which is not tried again
}

// usualSessions is where services have their sessions, also those that do not link to them.
const usualSessions = "/redfish/v1/SessionService/Sessions"

// logoutTime bounds the deletion of a session: services keep few of them, but forget them in time.
const logoutTime = 5 * time.Second

// authorize adds the login to a request and returns the token that it has added, if any.
func (s *Client) authorize(ctx context.Context, r *http.Request) (token string, err error) {
	if s.User == "" {
		return "", nil
	}
	if strings.HasPrefix(r.URL.Path, "/redfish/") {
		if token, err = s.login(ctx); err != nil {
			return "", err
		}
	}
	if token == "" {
		r.SetBasicAuth(s.User, string(s.Password))
	} else {
		r.Header.Set("X-Auth-Token", token)
	}
	return token, nil
}

// login opens a session, unless there is one, and returns its token; "" for HTTP Basic.
func (s *Client) login(ctx context.Context) (string, error) {
	c := s.session
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decided || c.refused != nil {
		return c.token, c.refused
	}
	at, err := s.sessions(ctx)
	if err != nil {
		return "", err
	}
	c.decided, c.linked = true, at != ""
	if at == "" {
		return "", nil
	}
	return c.token, s.open(ctx, at)
}

// open opens a session, and leaves HTTP Basic when the service opens none. The session is locked.
func (s *Client) open(ctx context.Context, at string) error {
	c := s.session
	in := map[string]string{"UserName": s.User, "Password": string(s.Password)}
	a, err := s.exchange(ctx, message{method: http.MethodPost, path: at, in: in, anonymous: true})
	switch {
	case err != nil:
		c.decided = false
		return err
	case a.code == http.StatusUnauthorized && c.linked:
		c.refused = s.status(a, http.MethodPost, at)
		return c.refused
	case a.code < 300:
		var t Tree
		_ = decode(a.body, &t) // the answer may have no body
		if c.token = a.header.Get("X-Auth-Token"); c.token != "" {
			c.at = cmp.Or(t.link(), a.header.Get("Location"))
		}
	}
	return nil // without a token, such as at the limit of sessions: by HTTP Basic
}

// anyway opens a session at a service that refuses HTTP Basic, and does not link to its sessions. It
// reports whether there is a session now.
func (s *Client) anyway(ctx context.Context) bool {
	c := s.session
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.User == "" || !c.decided || c.linked {
		return c.token != ""
	}
	c.linked = true // it is tried once
	_ = s.open(ctx, usualSessions)
	return c.token != ""
}

// sessions returns the path of the service's sessions; "" when its root, which needs no login, links
// to none.
func (s *Client) sessions(ctx context.Context) (string, error) {
	a, err := s.exchange(ctx, message{method: http.MethodGet, path: "/redfish/v1/", anonymous: true})
	if err != nil {
		return "", err
	}
	var t Tree
	if a.code >= 300 || decode(a.body, &t) != nil {
		return "", nil
	}
	at := t.Get("Links", "Sessions").link()
	if service := t.Get("SessionService").link(); at == "" && service != "" {
		at = strings.TrimSuffix(service, "/") + "/Sessions"
	}
	return at, nil
}

// expired forgets a session whose token was refused.
func (s *Client) expired(token string) {
	c := s.session
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == token {
		c.decided, c.token, c.at = false, "", ""
	}
}

// logout deletes the session.
func (s *Client) logout() {
	c := s.session
	c.mu.Lock()
	token, at := c.token, c.at
	c.decided, c.token, c.at = false, "", ""
	c.mu.Unlock()
	if token == "" || at == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), logoutTime)
	defer cancel()
	_, _ = s.exchange(ctx, message{method: http.MethodDelete, path: at, anonymous: true, token: token})
}
