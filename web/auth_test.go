package web_test

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/web/auth"
)

func form(token string) request {
	return request{
		method: "POST", path: "/login", anonymous: true,
		body: url.Values{"token": {token}}.Encode(), contentType: "application/x-www-form-urlencoded",
	}
}

// session logs in and returns the headers of a browser with the session.
func (s *harness) session(t *testing.T) map[string]string {
	t.Helper()
	return s.sessionOf(t, secret)
}

// sessionOf is session for the holder of another token.
func (s *harness) sessionOf(t *testing.T, token string) map[string]string {
	t.Helper()
	resp := s.do(form(token))
	if resp.Code != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		t.Fatalf("login: got %d with %d cookies", resp.Code, len(resp.Cookies()))
	}
	c := resp.Cookies()[0]
	return map[string]string{"Cookie": c.Name + "=" + c.Value}
}

// token makes a named token, and returns its secret.
func (s *harness) token(t *testing.T, role pools.Role, of ...string) string {
	t.Helper()
	made, err := s.Named.Create(pools.APITokenRequest{Name: fmt.Sprintf("%s-%d", role, len(s.Named.List())), Role: role, Pools: of}, "the test")
	if err != nil {
		t.Fatal(err)
	}
	return made.Token
}

// bearer returns the header of a client with a token.
func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func TestAccess(t *testing.T) {
	s := newHarness(t)
	cookie := s.session(t)
	with := func(h map[string]string, k, v string) map[string]string {
		out := maps.Clone(h)
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
		return out
	}
	header := func(v string) map[string]string { return map[string]string{"Authorization": v} }
	get := request{path: "/api/v1/nodes", anonymous: true}
	post := request{method: "POST", path: "/api/v1/nodes", body: "{}", anonymous: true}
	tests := []struct {
		name   string
		req    request
		header map[string]string
		want   int
	}{
		{"nobody reads", get, nil, 401},
		{"nobody writes", post, nil, 401},
		{"nobody reads an unknown path", request{path: "/api/v2", anonymous: true}, nil, 401},
		{"the token", get, header("Bearer " + secret), 200},
		{"the scheme in other letters", get, header("bearer " + secret), 200},
		{"a wrong token", get, header("Bearer " + secret[1:] + "0"), 401},
		{"part of the token", get, header("Bearer " + secret[:63]), 401},
		{"the token and more", get, header("Bearer " + secret + "0"), 401},
		{"no token", get, header("Bearer "), 401},
		{"another scheme", get, header("Basic " + secret), 401},
		{"the token alone", get, header(secret), 401},
		{"the token in the URL", request{path: "/api/v1/nodes?token=" + secret, anonymous: true}, nil, 401},
		{"a session reads", get, cookie, 200},
		{"a session does not write", post, cookie, 401},
		{"a session that is none", get, map[string]string{"Cookie": "drover=AAAA"}, 401},
		{"the token as a cookie", get, map[string]string{"Cookie": "drover=" + secret}, 401},
		{"the token writes", post, header("Bearer " + secret), 400},
		{"another site writes", post, with(header("Bearer "+secret), "Sec-Fetch-Site", "cross-site"), 403},
		{"another origin writes", post, with(header("Bearer "+secret), "Origin", "https://evil.example"), 403},
		{"another site logs in", form(secret), map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"another site logs out", request{method: "POST", path: "/logout", anonymous: true}, with(cookie, "Sec-Fetch-Site", "cross-site"), 403},
		{"the page itself logs out", request{method: "POST", path: "/logout", anonymous: true}, with(cookie, "Sec-Fetch-Site", "same-origin"), 303},
		{"the session is over", get, cookie, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.now = s.now.Add(3 * time.Second) // no limit of wrong tokens
			tt.req.header = tt.header
			if resp := s.do(tt.req); resp.Code != tt.want {
				t.Errorf("got %d, want %d: %s", resp.Code, tt.want, resp.Body.String())
			}
		})
	}
	if strings.Contains(s.log.String(), secret) {
		t.Error("the token is in the log")
	}
}

// TestNoTokenSet: the zero Token accepts no secret, not even an empty one.
func TestNoTokenSet(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Token = auth.Token{} })
	for _, h := range []string{"", "Bearer ", "Bearer x"} {
		if resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: map[string]string{"Authorization": h}}); resp.Code != 401 {
			t.Errorf("%q: got %d", h, resp.Code)
		}
	}
	if resp := s.do(form("")); resp.Code != 403 {
		t.Errorf("login: got %d", resp.Code)
	}
}

func TestSession(t *testing.T) {
	s := newHarness(t)
	anonymous := request{path: "/", anonymous: true}
	if got := s.do(anonymous).Body.String(); !strings.Contains(got, `action="/login"`) || strings.Contains(got, "m1") {
		t.Error("without a session there is more, or less, than the login")
	}
	resp := s.do(form(secret + " "))
	if got := resp.Body.String(); resp.Code != 403 || !strings.Contains(got, "That is not the token.") || len(resp.Cookies()) != 0 || strings.Contains(got, secret) {
		t.Errorf("wrong token: got %d with %d cookies", resp.Code, len(resp.Cookies()))
	}
	resp = s.do(form(secret))
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.MaxAge != 12*3600 || len(c.Value) < 26 {
		t.Errorf("got cookie %s", c)
	}
	if strings.Contains(c.String(), secret) || strings.Contains(resp.Header().Get("Location"), secret) {
		t.Error("the token is in the cookie or in the URL")
	}
	page := request{path: "/", anonymous: true, header: map[string]string{"Cookie": c.Name + "=" + c.Value}}
	if got := s.do(page).Body.String(); !strings.Contains(got, "<table>") || strings.Contains(got, secret) {
		t.Error("with a session: no page, or the token in it")
	}
	s.now = s.now.Add(12*time.Hour - time.Second)
	if got := s.do(page).Body.String(); !strings.Contains(got, "<table>") {
		t.Error("the session ended before its time")
	}
	s.now = s.now.Add(time.Second)
	if got := s.do(page).Body.String(); strings.Contains(got, "<table>") {
		t.Error("the session did not end")
	}
}

func TestSecureCookie(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.TLS = &tls.Config{} })
	c := s.do(form(secret)).Cookies()[0]
	if !c.Secure || c.Name != "__Host-drover" {
		t.Errorf("got cookie %s", c)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := newHarness(t)
	first := s.session(t)
	for range 1000 {
		s.now = s.now.Add(time.Second)
		s.session(t)
	}
	if resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: first}); resp.Code != 401 {
		t.Errorf("the first of 1001 sessions: got %d", resp.Code)
	}
}

// Wrong tokens are limited. The right one is not: another local user can use up the
// attempts of an address that all clients on this host share (low finding: lock-out on
// loopback).
func TestLoginIsLimited(t *testing.T) {
	s := newHarness(t)
	attempt := func(want int) {
		t.Helper()
		if resp := s.do(form("guess")); resp.Code != want {
			t.Errorf("got %d, want %d", resp.Code, want)
		}
	}
	for range 5 {
		attempt(403)
	}
	attempt(429)
	s.session(t)
	attempt(429)
	s.now = s.now.Add(3 * time.Second)
	attempt(403)
	attempt(429)
}

func TestHeaders(t *testing.T) {
	s := newHarness(t)
	reqs := []request{
		{path: "/", anonymous: true}, {path: "/", header: s.session(t)}, {path: "/style.css", anonymous: true},
		{path: "/page.js", anonymous: true}, {path: "/api/v1/nodes"}, {path: "/nothing"}, {path: "/healthz"},
		{method: "POST", path: "/login", header: map[string]string{"Sec-Fetch-Site": "cross-site"}},
	}
	for _, r := range reqs {
		resp := s.do(r)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff",
			"X-Frame-Options":        "DENY",
			"Referrer-Policy":        "no-referrer",
			"Cache-Control":          "no-store",
		} {
			if name == "Cache-Control" && (r.path == "/style.css" || strings.HasSuffix(r.path, ".js")) {
				want = "no-cache" // a browser keeps it, and asks whether it is the same
			}
			if got := resp.Header().Get(name); got != want {
				t.Errorf("%s %s: got %s %q, want %q", r.method, r.path, name, got, want)
			}
		}
		csp := resp.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: got CSP %q without %q", r.path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: CSP %q", r.path, csp)
		}
		if got := resp.Header().Get("Content-Type"); got == "" {
			t.Errorf("%s: no Content-Type", r.path)
		}
	}
}

// TestSessionsOfOne: a token that logs in again and again ends its own sessions, and no others.
func TestSessionsOfOne(t *testing.T) {
	s := newHarness(t)
	admin, viewer := s.session(t), s.token(t, pools.RoleViewer)
	first := s.sessionOf(t, viewer)
	var last map[string]string
	for range 1500 {
		s.now = s.now.Add(time.Second)
		last = s.sessionOf(t, viewer)
	}
	code := func(header map[string]string) int {
		return s.do(request{path: "/api/v1/nodes", anonymous: true, header: header}).Code
	}
	if code(admin) != 200 || code(first) != 401 || code(last) != 200 {
		t.Errorf("got %d for the other token, %d for the first and %d for the last session of this one", code(admin), code(first), code(last))
	}
	if again := s.session(t); code(again) != 200 || code(admin) != 200 {
		t.Error("another session of the other token ends one of its own")
	}
}
