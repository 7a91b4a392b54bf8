package login_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/internal/lograte"
	"drover/web/auth"
	"drover/web/page/login"
)

var (
	token = strings.Repeat("0123456789abcdef", 4)
	epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// door is a login whose templates are their names and their data.
type door struct {
	*login.Login
	http.ServeMux
	log fixture.Log
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{}
	now := func() time.Time { return epoch }
	log := slog.New(slog.NewTextHandler(&d.log, nil))
	d.Login = &login.Login{
		Guard: auth.New(auth.NewToken(token), nil, false, now), Log: log, Lines: &lograte.Limiter{Log: log},
		Render: func(w http.ResponseWriter, code int, template string, data any) error {
			w.WriteHeader(code)
			_, err := fmt.Fprintf(w, "%s %+v", template, data)
			return err
		},
	}
	d.Routes(&d.ServeMux)
	return d
}

// post submits a form.
func (d *door) post(path string, values url.Values, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	return d.send(httptest.NewRequest("POST", path, strings.NewReader(values.Encode())), cookies...)
}

func (d *door) send(r *http.Request, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	if r.Method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// TestLogin: the token begins a session, and logout ends it.
func TestLogin(t *testing.T) {
	d := newDoor(t)
	resp := d.post("/login", url.Values{"token": {token}, "next": {"/nodes?state=stuck"}})
	cookies := resp.Result().Cookies()
	if resp.Code != http.StatusSeeOther || resp.Header().Get("Location") != "/nodes?state=stuck" || len(cookies) != 1 || cookies[0].MaxAge <= 0 {
		t.Fatalf("got %d %v", resp.Code, resp.Header())
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(cookies[0])
	if _, ok := d.Guard.Session(r); !ok {
		t.Error("there is no session")
	}
	resp = d.post("/logout", nil, cookies[0])
	if c := resp.Result().Cookies(); resp.Code != http.StatusSeeOther || resp.Header().Get("Location") != "/" || len(c) != 1 || c[0].MaxAge >= 0 {
		t.Errorf("logout: got %d %v", resp.Code, resp.Header())
	}
	if _, ok := d.Guard.Session(r); ok {
		t.Error("the session goes on after logout")
	}
	fixture.WantText(t, "the log", d.log.String(), "msg=login", "from 192.0.2.1")
	fixture.WantNoText(t, "the log", d.log.String(), token, cookies[0].Value)
}

// TestRefused: whatever is no login gets the form again, with the reason, and no session. The
// answer and the log do not have what was sent for a token.
func TestRefused(t *testing.T) {
	const wrong = "a-wrong-token"
	for name, tt := range map[string]struct {
		path   string
		values url.Values
		code   int
		want   string
	}{
		"a wrong token":                   {"/login", url.Values{"token": {wrong}, "next": {"/nodes"}}, 403, "Next:/nodes "},
		"no token":                        {"/login", nil, 403, "not the token"},
		"the token in the URL":            {"/login?token=" + token, nil, 403, "not the token"},
		"half of it":                      {"/login", url.Values{"token": {token[:32]}}, 403, "not the token"},
		"the token behind another one":    {"/login", url.Values{"token": {wrong, token}}, 403, "not the token"},
		"a certificate that is not there": {"/login", url.Values{"with": {"certificate"}, "token": {token}}, 403, "login {"},
		"a form that is too long":         {"/login", url.Values{"token": {token}, "x": {strings.Repeat("x", 16<<10)}}, 400, "no login form"},
	} {
		d := newDoor(t)
		resp := d.post(tt.path, tt.values)
		if resp.Code != tt.code || len(resp.Result().Cookies()) > 0 || resp.Header().Get("Location") != "" {
			t.Errorf("%s: got %d %v", name, resp.Code, resp.Header())
		}
		fixture.WantText(t, name, resp.Body.String(), tt.want, "login {Error:")
		fixture.WantNoText(t, name, resp.Body.String()+d.log.String(), token, wrong)
	}
	resp := newDoor(t).send(httptest.NewRequest("POST", "/login", strings.NewReader("token=%zz")))
	if resp.Code != 400 || len(resp.Result().Cookies()) > 0 {
		t.Errorf("a form that is none: got %d", resp.Code)
	}
}

// TestGuesses: guesses are slowed, and the right token is let in all the same. The log has few
// lines of them.
func TestGuesses(t *testing.T) {
	d := newDoor(t)
	slowed := 0
	for range 1000 {
		if resp := d.post("/login", url.Values{"token": {"x"}}); resp.Code == http.StatusTooManyRequests {
			slowed++
			if resp.Header().Get("Retry-After") != "3" {
				t.Fatalf("got %v", resp.Header())
			}
		}
	}
	if slowed < 900 {
		t.Errorf("%d of 1000 guesses were slowed", slowed)
	}
	if n := strings.Count(d.log.String(), "login refused"); n == 0 || n > 100 {
		t.Errorf("the log has %d lines of guesses", n)
	}
	if resp := d.post("/login", url.Values{"token": {token}}); resp.Code != http.StatusSeeOther {
		t.Errorf("the right token: got %d", resp.Code)
	}
}

// TestNext: a login leads to this server alone.
func TestNext(t *testing.T) {
	d := newDoor(t)
	for next, want := range map[string]string{
		"": "/", "/": "/", "/nodes": "/nodes", "/nodes?q=a%20b&page=2": "/nodes?q=a%20b&page=2", "/nodes/a%2Fb": "/nodes/a/b", "/nodes#x": "/nodes",
		"nodes": "/", "?q=1": "/", "//evil.example": "/", "///evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/", "/%2f/evil.example": "/", "/%2fevil.example": "/",
		"https://evil.example/": "/", "javascript:alert(1)": "/", "http:/nodes": "/", "//user@evil.example": "/", "/\r\nX-Evil: 1": "/", "/x\" onload=": "/x%22%20onload=", "/%zz": "/",
		"/\t/evil.example": "/",
	} {
		resp := d.post("/login", url.Values{"token": {token}, "next": {next}})
		if got := resp.Header().Get("Location"); resp.Code != http.StatusSeeOther || got != want {
			t.Errorf("%q: got %d to %q, want %q", next, resp.Code, got, want)
		}
		resp = d.post("/login", url.Values{"token": {"x"}, "next": {next}})
		fixture.WantText(t, next, resp.Body.String(), " Next:"+want+" ")
	}
}

// TestAsk: the form leads back to the view that was asked for. What would change something is not
// asked for again.
func TestAsk(t *testing.T) {
	d := newDoor(t)
	for _, tt := range []struct{ method, path, want string }{
		{"GET", "/nodes?q=x", "login {Error:why Next:/nodes?q=x Provider: Certificate:}"},
		{"POST", "/change?do=remove", "login {Error:why Next: Provider: Certificate:}"},
		{"GET", "//evil.example/x", "login {Error:why Next:/ Provider: Certificate:}"},
	} {
		w := httptest.NewRecorder()
		if err := d.Ask(w, httptest.NewRequest(tt.method, tt.path, nil), 403, "why"); err != nil || w.Code != 403 || w.Body.String() != tt.want {
			t.Errorf("%s %s: got %d %s, %v", tt.method, tt.path, w.Code, w.Body, err)
		}
	}
}

// TestMethods: sessions begin and end by POST alone, so that no link does it, and without a
// provider there is no login at one.
func TestMethods(t *testing.T) {
	d := newDoor(t)
	for _, tt := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/login", 405}, {"GET", "/login?token=" + token, 405}, {"GET", "/logout", 405}, {"HEAD", "/logout", 405}, {"PUT", "/login", 405},
		{"GET", "/login/oidc", 404}, {"GET", "/login/callback?code=x&state=y", 404}, {"POST", "/login/oidc", 405}, {"POST", "/login/callback", 405}, {"GET", "/login/other", 404},
	} {
		resp := d.send(httptest.NewRequest(tt.method, tt.path, http.NoBody))
		text, _ := io.ReadAll(resp.Body)
		if resp.Code != tt.code || len(resp.Result().Cookies()) > 0 || strings.Contains(string(text), token) {
			t.Errorf("%s %s: got %d %s", tt.method, tt.path, resp.Code, text)
		}
	}
}
