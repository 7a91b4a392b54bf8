package oidc_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/oidcsim"
	"drover/pools"
	"drover/web/answer"
	"drover/web/auth/oidc"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// login is drover at a simulated provider.
type login struct {
	*oidc.Provider
	sim *oidcsim.Provider
	now time.Time
	t   *testing.T
}

func newLogin(t *testing.T) *login {
	t.Helper()
	l := &login{now: epoch, t: t}
	l.sim = oidcsim.New(t, l.clock)
	l.Provider = oidc.New(l.settings(), nil, clientSecret, l.clock)
	return l
}

func (l *login) clock() time.Time { return l.now }

func (l *login) settings() pools.OIDC {
	return pools.OIDC{Issuer: l.sim.URL, ClientID: oidcsim.ClientID, URL: oidcsim.Page, Scopes: pools.Strings{"profile", "groups"}, GroupsClaim: "groups"}
}

// clientSecret returns the secret as a file has it.
func clientSecret(context.Context) (string, error) { return oidcsim.ClientSecret + "\n", nil }

// visit is a login that is under way in a browser.
type visit struct {
	cookie *http.Cookie
	back   url.Values // what the provider leads back with
}

// begin lets a browser go to the provider, and back.
func (l *login) begin() visit {
	l.t.Helper()
	start, err := l.Begin(l.t.Context(), "/nodes")
	if err != nil {
		l.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(l.t.Context(), "GET", start.URL, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		l.t.Fatal(err)
	}
	return visit{start.Cookie, back.Query()}
}

// finish lets the browser arrive.
func (l *login) finish(v visit) (oidc.Person, string, error) {
	r := httptest.NewRequest("GET", oidc.CallbackPath+"?"+v.back.Encode(), nil)
	if v.cookie != nil {
		r.AddCookie(&http.Cookie{Name: v.cookie.Name, Value: v.cookie.Value})
	}
	return l.Finish(l.t.Context(), r)
}

// wantRefused fails the test unless a login fails with a status, and the log says why. Neither the
// log nor the person learns a secret of the login.
func (l *login) wantRefused(v visit, status int, why string) {
	l.t.Helper()
	who, _, err := l.finish(v)
	if err == nil || who.Name != "" || len(who.Groups) > 0 {
		l.t.Fatalf("got %+v, %v", who, err)
	}
	e := answer.Of(err)
	if e.Code != status || !strings.Contains(err.Error(), why) {
		l.t.Errorf("got %d %q for the log, want %d with %q", e.Code, err, status, why)
	}
	secrets := []string{oidcsim.ClientSecret, oidcsim.AccessToken, oidcsim.ErrorText, "eyJ"}
	for _, name := range []string{"code", "state"} {
		if s := v.back.Get(name); len(s) > 8 {
			secrets = append(secrets, s)
		}
	}
	fixture.WantNoText(l.t, "the log", err.Error(), secrets...)
	fixture.WantNoText(l.t, "the page", e.Msg, secrets...)
}

// TestLogin: the ID token says who has logged in, and the cookie where to go next.
func TestLogin(t *testing.T) {
	l := newLogin(t)
	l.sim.Claims = map[string]any{"groups": []string{"watchers", "others"}}
	who, next, err := l.finish(l.begin())
	if err != nil || who.Name != "alice" || strings.Join(who.Groups, " ") != "watchers others" || next != "/nodes" || l.sim.Asked != 1 {
		t.Errorf("got %+v to %q, %v", who, next, err)
	}
}

// TestRefusedTokens: an ID token counts only if it is of this provider, for this client, of this
// login, and of now.
func TestRefusedTokens(t *testing.T) {
	unsigned := func(alg, signature string) func(*login) {
		return func(l *login) {
			l.sim.IDToken = func(claims map[string]any) string {
				return oidcsim.Part(l.t, map[string]string{"alg": alg, "kid": "1"}) + "." + oidcsim.Part(l.t, claims) + "." + signature
			}
		}
	}
	claims := func(name string, value any) func(*login) {
		return func(l *login) { l.sim.Claims = map[string]any{name: value} }
	}
	for name, tt := range map[string]struct {
		edit func(*login)
		why  string
	}{
		"another issuer":      {claims("iss", "https://evil.example"), "different provider"},
		"no issuer":           {claims("iss", nil), "different provider"},
		"another audience":    {claims("aud", "grafana"), "audience"},
		"no audience":         {claims("aud", nil), "audience"},
		"made for another":    {func(l *login) { l.sim.Claims = map[string]any{"aud": []string{"drover", "grafana"}, "azp": "grafana"} }, "another client"},
		"expired":             {claims("exp", epoch.Add(-time.Minute).Unix()), "expired"},
		"expires now":         {func(l *login) { l.sim.Claims = map[string]any{"exp": epoch.Unix()}; l.now = epoch.Add(time.Second) }, "expired"},
		"without an end":      {claims("exp", nil), "ID token"},
		"of the future":       {claims("nbf", epoch.Add(2*time.Hour).Unix()), "nbf"},
		"another nonce":       {claims("nonce", "x"), "nonce"},
		"no nonce":            {claims("nonce", nil), "nonce"},
		"an empty nonce":      {claims("nonce", ""), "nonce"},
		"another key":         {func(l *login) { l.sim.Named = oidcsim.Key(1) }, "signature"},
		"no signature":        {unsigned("none", ""), "ID token"},
		"a signature of HMAC": {unsigned("HS256", "AAAA"), "ID token"},
		"half of a signature": {unsigned("RS256", "AAAA"), "ID token"},
		"no JWT":              {func(l *login) { l.sim.IDToken = func(map[string]any) string { return "x" } }, "ID token"},
		"no ID token":         {func(l *login) { l.sim.IDToken = func(map[string]any) string { return "" } }, "no ID token"},
		"no name":             {func(l *login) { l.sim.Claims = map[string]any{"preferred_username": "", "sub": ""} }, "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t)
			v := l.begin()
			tt.edit(l)
			l.wantRefused(v, http.StatusForbidden, tt.why)
		})
	}
}

// TestRefusedVisits: only the browser that has begun a login ends it, once, in time, and with the
// answer of the provider. Otherwise the provider is not asked.
func TestRefusedVisits(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*login, *visit)
		why  string
	}{
		"another state":           {func(_ *login, v *visit) { v.back.Set("state", "X"+v.back.Get("state")) }, "state"},
		"no state":                {func(_ *login, v *visit) { v.back.Del("state") }, "state"},
		"another browser":         {func(_ *login, v *visit) { v.cookie = nil }, "no cookie"},
		"a cookie that is none":   {func(_ *login, v *visit) { v.cookie.Value = "AAAA" }, "not of this server"},
		"an empty cookie":         {func(_ *login, v *visit) { v.cookie.Value = "" }, "not of this server"},
		"a cookie that was cut":   {func(_ *login, v *visit) { v.cookie.Value = v.cookie.Value[:len(v.cookie.Value)-4] }, "not of this server"},
		"a cookie that is longer": {func(_ *login, v *visit) { v.cookie.Value += "AAAA" }, "not of this server"},
		"another login's cookie":  {func(l *login, v *visit) { v.cookie = l.begin().cookie }, "state"},
		"another login's state":   {func(l *login, v *visit) { v.back.Set("state", l.begin().back.Get("state")) }, "state"},
		"late":                    {func(l *login, _ *visit) { l.now = l.now.Add(10 * time.Minute) }, "more than 10m"},
		"refused":                 {func(_ *login, v *visit) { v.back.Set("error", "access_denied") }, "refused"},
		"another's answer":        {func(_ *login, v *visit) { v.back.Set("iss", "https://evil.example") }, "iss"},
		"a cookie of before": {func(l *login, _ *visit) {
			l.Provider = oidc.New(l.settings(), nil, clientSecret, l.clock)
		}, "before its start"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t)
			v := l.begin()
			tt.edit(l, &v)
			l.wantRefused(v, http.StatusForbidden, tt.why)
			if l.sim.Asked != 0 {
				t.Errorf("the provider was asked %d times", l.sim.Asked)
			}
		})
	}
}

// TestCodes: a code counts once, and only together with the verifier of its login. The error says
// that the provider was asked, so that guesses can be limited.
func TestCodes(t *testing.T) {
	for name, edit := range map[string]func(*login, *visit){
		"another code":         func(_ *login, v *visit) { v.back.Set("code", "X"+v.back.Get("code")) },
		"no code":              func(_ *login, v *visit) { v.back.Del("code") },
		"a used code":          func(l *login, _ *visit) { clear(l.sim.Codes) },
		"another login's code": func(l *login, v *visit) { v.back.Set("code", l.begin().back.Get("code")) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t)
			v := l.begin()
			edit(l, &v)
			l.wantRefused(v, http.StatusForbidden, "invalid_grant")
			_, _, err := l.finish(v) // one that has failed is not used up
			if e, ok := errors.AsType[*oidc.Error](err); !ok || !e.Asked || l.sim.Asked != 2 {
				t.Errorf("again: got %v, and the provider was asked %d times", err, l.sim.Asked)
			}
		})
	}
}

// TestReplay: a state is good once, also for the browser that it is of, and also while the provider
// is being asked.
func TestReplay(t *testing.T) {
	l := newLogin(t)
	v := l.begin()
	if _, _, err := l.finish(v); err != nil {
		t.Fatal(err)
	}
	l.wantRefused(v, http.StatusForbidden, "used before")
	if l.sim.Asked != 1 {
		t.Errorf("the provider was asked %d times", l.sim.Asked)
	}
	v = l.begin()
	asked := 0
	l.sim.Instead["/token"] = func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			l.wantRefused(v, http.StatusForbidden, "used before")
		}
		w.WriteHeader(http.StatusInternalServerError)
	}
	l.wantRefused(v, http.StatusForbidden, "500")
	if asked != 1 {
		t.Errorf("the provider was asked %d times at once", asked)
	}
}

// TestFlood: logins that somebody begins and lets fail, in any number, keep nobody out.
func TestFlood(t *testing.T) {
	l := newLogin(t)
	good := l.begin()
	for range 10_001 {
		start, err := l.Begin(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(start.URL)
		if err != nil {
			t.Fatal(err)
		}
		v := visit{start.Cookie, url.Values{"error": {"x"}, "state": {to.Query().Get("state")}}}
		if _, _, err := l.finish(v); answer.Of(err).Code != http.StatusForbidden {
			t.Fatalf("one that fails: got %v", err)
		}
	}
	if _, _, err := l.finish(good); err != nil {
		t.Error(err)
	}
}

// TestCookie: the cookie of a login is for this host and no script, and with HTTPS for that alone.
func TestCookie(t *testing.T) {
	l := newLogin(t)
	for page, secure := range map[string]bool{"http://localhost:8443": false, "https://drover.example.org": true} {
		o := l.settings()
		o.URL = page
		p := oidc.New(o, nil, clientSecret, l.clock)
		start, err := p.Begin(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*http.Cookie{start.Cookie, p.Forget()} {
			if c.Secure != secure || strings.HasPrefix(c.Name, "__Host-") != secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("%s: got %s", page, c)
			}
		}
		if start.Cookie.MaxAge != 600 || p.Forget().MaxAge >= 0 || p.Forget().Value != "" || p.Secure() != secure {
			t.Errorf("%s: got %s, and to forget it %s", page, start.Cookie, p.Forget())
		}
		to, err := url.Parse(start.URL)
		if err != nil || to.Query().Get("redirect_uri") != page+oidc.CallbackPath {
			t.Errorf("%s: got %s, %v", page, start.URL, err)
		}
		for _, secret := range []string{to.Query().Get("state"), to.Query().Get("nonce")} { // it is sealed
			if len(secret) < 20 || strings.Contains(start.Cookie.Value, secret) {
				t.Errorf("%s: the cookie tells %q", page, secret)
			}
		}
		if strings.Contains(start.URL, oidcsim.ClientSecret) {
			t.Errorf("%s: the browser gets the secret of drover", page)
		}
	}
}

// TestNext: a cookie stays small, whatever was asked for.
func TestNext(t *testing.T) {
	l := newLogin(t)
	for next, want := range map[string]string{"/nodes?q=x": "/nodes?q=x", "/" + strings.Repeat("a", 1024): "/", "": ""} {
		start, err := l.Begin(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		v := l.begin()
		to, err := url.Parse(start.URL)
		if err != nil || len(start.Cookie.Value) > 3000 {
			t.Fatalf("a cookie of %d bytes, %v", len(start.Cookie.Value), err)
		}
		v.cookie = start.Cookie
		v.back.Set("state", to.Query().Get("state"))
		l.sim.Codes[v.back.Get("code")] = to.Query()
		if _, got, err := l.finish(v); err != nil || got != want {
			t.Errorf("%.20s: got %q, %v", next, got, err)
		}
	}
}
