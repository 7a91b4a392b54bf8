package oidc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/oidcsim"
	"drover/web/answer"
	"drover/web/auth/oidc"
)

// wantDown fails the test unless a login cannot begin. What the provider says is in the log, on a
// line, and not on the page.
func (l *login) wantDown(why string) {
	l.t.Helper()
	_, err := l.Begin(l.t.Context(), "/")
	if err == nil {
		l.t.Fatal("the login has begun")
	}
	e := answer.Of(err)
	if e.Code != http.StatusServiceUnavailable || !strings.Contains(e.Msg, "The provider "+l.Host()+" does not answer") {
		l.t.Errorf("got %d %q", e.Code, e.Msg)
	}
	text := err.Error()
	if len(text) > 400 || strings.ContainsAny(text, "\r\n\x1b") {
		l.t.Errorf("the log gets %d bytes: %.400q", len(text), text)
	}
	fixture.WantText(l.t, "the log", text, why)
}

// TestDown: a provider that is down, or is another one, begins no login.
func TestDown(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*login)
		why  string
	}{
		"another issuer": {func(l *login) { l.sim.About = map[string]any{"issuer": "https://evil.example"} }, "issuer"},
		"an error": {func(l *login) {
			l.sim.Instead["/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, strings.Repeat("\x1b[31m\r\n", 1000), 500)
			}
		}, "500"},
		"a page": {func(l *login) {
			l.sim.Instead["/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }
		}, "discovery"},
		"a redirect": {func(l *login) {
			l.sim.Instead["/.well-known/openid-configuration"] = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) }
		}, "302"},
		"no end": {func(l *login) { l.sim.Instead["/.well-known/openid-configuration"] = endless(l.t) }, "discovery"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t)
			tt.edit(l)
			l.wantDown(tt.why)
		})
	}
	l := newLogin(t)
	o := l.settings()
	o.Issuer = "http://127.0.0.1:1"
	l.Provider = oidc.New(o, nil, nil, l.clock)
	l.wantDown("refused")
}

// endless returns a handler whose answer has no end. The test fails if much of it is read: more
// than a megabyte, and what the sockets keep.
func endless(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 64 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
				return
			}
		}
		t.Error("64 MB of an answer were read")
	}
}

// TestComesUp: a provider that was down is asked again, some seconds later.
func TestComesUp(t *testing.T) {
	l := newLogin(t)
	asked := 0
	l.sim.Instead["/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusInternalServerError)
	}
	l.wantDown("500")
	l.wantDown("500")
	if asked != 1 {
		t.Errorf("asked %d times at once", asked)
	}
	clear(l.sim.Instead)
	l.now = l.now.Add(3 * time.Second)
	if _, err := l.Begin(t.Context(), "/"); err != nil {
		t.Error(err)
	}
}

// TestTokenEndpoint: whatever the provider answers to a code, the login fails, and the client's
// secret goes nowhere else.
func TestTokenEndpoint(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server gets %s %s", r.Method, r.URL)
	}))
	t.Cleanup(other.Close)
	say := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for name, tt := range map[string]struct {
		h   http.HandlerFunc
		why string
	}{
		"an error":                    {say(500, "text/plain", oidcsim.ErrorText+oidcsim.AccessToken), "500"},
		"an error with tokens":        {say(400, "application/json", `{"error": "x\u001b[31m", "error_description": "`+oidcsim.ErrorText+`", "access_token": "`+oidcsim.AccessToken+`"}`), "400"},
		"a page":                      {say(200, "text/html", oidcsim.AccessToken), "token endpoint"},
		"no JSON":                     {say(200, "application/json", oidcsim.AccessToken), "token endpoint"},
		"no token":                    {say(200, "application/json", `{"token_type": "Bearer"}`), "token endpoint"},
		"no ID token":                 {say(200, "application/json", `{"access_token": "`+oidcsim.AccessToken+`"}`), "no ID token"},
		"an ID token of another kind": {say(200, "application/json", `{"access_token": "x", "id_token": {"a": 1}}`), "no ID token"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "307"},
		"no end": {endless(t), "token endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t)
			v := l.begin()
			l.sim.Instead["/token"] = tt.h
			l.wantRefused(v, http.StatusForbidden, tt.why)
		})
	}
}

// TestKeys: without the provider's keys nobody is logged in.
func TestKeys(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"no keys":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"keys": []}`) },
		"no end":   endless(t),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t)
			v := l.begin()
			l.sim.Instead["/keys"] = h
			l.wantRefused(v, http.StatusForbidden, "ID token")
		})
	}
}

// TestClientSecret: the secret is sent as the provider takes it, a client without one sends none,
// and a secret that cannot be read ends the login alone.
func TestClientSecret(t *testing.T) {
	for _, tt := range []struct {
		name    string
		secret  func(context.Context) (string, error)
		methods []string
		want    string // of the header, and of the body
	}{
		{"basic", clientSecret, []string{"client_secret_post", "client_secret_basic"}, "true  "},
		{"the provider does not say", clientSecret, nil, "true  "},
		{"in the body", clientSecret, []string{"client_secret_post"}, "false drover " + oidcsim.ClientSecret},
		{"none", nil, []string{"client_secret_basic"}, "false drover "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLogin(t)
			l.Provider = oidc.New(l.settings(), nil, tt.secret, l.clock)
			l.sim.About = map[string]any{"token_endpoint_auth_methods_supported": tt.methods}
			v, got := l.begin(), ""
			l.sim.Instead["/token"] = func(w http.ResponseWriter, r *http.Request) {
				_, _, basic := r.BasicAuth()
				got = fmt.Sprintf("%t %s %s", basic, r.PostFormValue("client_id"), r.PostFormValue("client_secret"))
				if r.PostFormValue("code_verifier") == "" {
					t.Error("no verifier")
				}
				w.WriteHeader(http.StatusBadRequest)
			}
			l.wantRefused(v, http.StatusForbidden, "400")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	l := newLogin(t)
	l.Provider = oidc.New(l.settings(), nil, func(context.Context) (string, error) { return "", errors.New("permission denied") }, l.clock)
	_, _, err := l.finish(l.begin())
	if e := answer.Of(err); e.Code != http.StatusServiceUnavailable || e.Msg != "server.oidc.clientSecret: permission denied" || l.sim.Asked != 0 {
		t.Errorf("got %d %q", e.Code, e.Msg)
	}
}

// TestNames: the name of a person is one that the audit cannot take for something else, or the
// next one is taken. Groups are texts, and few.
func TestNames(t *testing.T) {
	long := strings.Repeat("x", 254)
	many := strings.Fields(strings.Repeat("g ", 2000))
	for _, tt := range []struct {
		name   string
		claims map[string]any
		want   string
		groups int
	}{
		{"a verified address", map[string]any{"email": "a@example.org", "email_verified": true}, "a@example.org", 0},
		{"an address that nobody verified", map[string]any{"email": "a@example.org"}, "alice", 0},
		{"verified as text", map[string]any{"email": "a@example.org", "email_verified": "true"}, "alice", 0},
		{"another alphabet", map[string]any{"preferred_username": "Ωμέγα 7"}, "Ωμέγα 7", 0},
		{"an address of the audit", map[string]any{"preferred_username": "root from 10.0.0.1:1"}, "42", 0},
		{"two lines", map[string]any{"preferred_username": "a\nb"}, "42", 0},
		{"a direction", map[string]any{"preferred_username": "a\u202eb"}, "42", 0},
		{"a quote", map[string]any{"preferred_username": `a"b`}, "42", 0},
		{"a long one", map[string]any{"preferred_username": long}, "42", 0},
		{"a number", map[string]any{"preferred_username": 7}, "42", 0},
		{"groups", map[string]any{"groups": []string{"a", "", "b", long}}, "alice", 2},
		{"one group", map[string]any{"groups": "a"}, "alice", 1},
		{"many groups", map[string]any{"groups": many}, "alice", 1000},
		{"numbers", map[string]any{"groups": []int{1}}, "alice", 0},
		{"an object", map[string]any{"groups": map[string]any{"a": true}}, "alice", 0},
		{"null", map[string]any{"groups": nil}, "alice", 0},
	} {
		l := newLogin(t)
		l.sim.Claims = tt.claims
		who, _, err := l.finish(l.begin())
		if err != nil || who.Name != tt.want || len(who.Groups) != tt.groups {
			t.Errorf("%s: got %q with %d groups, %v", tt.name, who.Name, len(who.Groups), err)
		}
	}
	l := newLogin(t)
	o := l.settings()
	o.NameClaim = "employee"
	l.Provider = oidc.New(o, nil, clientSecret, l.clock)
	l.wantRefused(l.begin(), http.StatusForbidden, "no name") // the one that is set is the only one
	l.sim.Claims = map[string]any{"employee": "E 7"}
	if who, _, err := l.finish(l.begin()); err != nil || who.Name != "E 7" {
		t.Errorf("got %q, %v", who.Name, err)
	}
}
