package web_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"drover/e2e/oidcsim"
	"drover/pools"
	"drover/web/auth/oidc"
)

// groupRoles are the roles of the provider's groups.
var groupRoles = []pools.Grant{
	{Name: "watchers", Role: pools.RoleViewer}, {Name: "storage-team", Role: pools.RoleOperator, Pools: []string{"storage"}},
	{Name: "compute-team", Role: pools.RoleOperator, Pools: []string{"compute"}}, {Name: "farm-admins", Role: pools.RoleAdmin}, {Name: "scrapers", Role: pools.RoleMetrics},
}

// withProvider returns a server where people log in at a provider.
func withProvider(t *testing.T) (*harness, *oidcsim.Provider) {
	t.Helper()
	var p *oidcsim.Provider
	s := newHarness(t, func(h *harness) {
		now := func() time.Time { return h.now }
		p = oidcsim.New(t, now)
		o := pools.OIDC{Issuer: p.URL, ClientID: oidcsim.ClientID, URL: oidcsim.Page, Scopes: pools.Strings{"profile", "groups"}, GroupsClaim: "groups"}
		h.Provider = oidc.New(o, nil, func(context.Context) (string, error) { return oidcsim.ClientSecret + "\n", nil }, now)
		h.Groups = func() []pools.Grant { return groupRoles }
	})
	return s, p
}

// visit is a login that is under way in a browser.
type visit struct {
	cookie string // of the login
	back   string // path and query that the provider leads back to
}

// visit lets a browser go to the provider, and back to the door.
func (s *harness) visit(t *testing.T, next string) visit {
	t.Helper()
	resp := s.do(request{path: "/login/oidc?next=" + url.QueryEscape(next), anonymous: true})
	if resp.Code != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		t.Fatalf("to the provider: got %d with %d cookies: %s", resp.Code, len(resp.Cookies()), resp.Body)
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 {
		t.Errorf("got cookie %s", c)
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, resp.Header().Get("Location"), nil)
	if err != nil {
		t.Fatal(err)
	}
	there, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Body.Close()
	back, err := there.Location()
	if err != nil {
		t.Fatal(err)
	}
	return visit{c.Name + "=" + c.Value, back.RequestURI()}
}

// arrive lets the browser come back from the provider.
func (s *harness) arrive(v visit) answer {
	return s.do(request{path: v.back, anonymous: true, header: map[string]string{"Cookie": v.cookie}})
}

// sessionCookie returns the header of a browser with the session that an answer begins; nil
// for none.
func sessionCookie(resp answer) map[string]string {
	for _, c := range resp.Cookies() {
		if c.Name == "drover" && c.MaxAge > 0 {
			return map[string]string{"Cookie": c.Name + "=" + c.Value}
		}
	}
	return nil
}

// TestOIDCLogin: each role of a group may what the role may, and the audit names the person.
func TestOIDCLogin(t *testing.T) {
	for _, tt := range []struct {
		name   string
		groups any
		role   pools.Role // empty: no login
		pool   string     // that it may not change
	}{
		{"viewer", []string{"watchers", "others"}, pools.RoleViewer, ""},
		{"operator", []string{"watchers", "storage-team"}, pools.RoleOperator, "compute"},
		{"operator of two pools", []string{"compute-team", "storage-team"}, pools.RoleOperator, "catchall"},
		{"admin", []string{"storage-team", "farm-admins"}, pools.RoleAdmin, ""},
		{"one group", "farm-admins", pools.RoleAdmin, ""},
		{"no group", nil, "", ""},
		{"a group without a role", []string{"others"}, "", ""},
		{"metrics", []string{"scrapers"}, "", ""},
		{"numbers", []int{1}, "", ""},
		{"an object", map[string]string{"farm-admins": "yes"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withProvider(t)
			p.Claims = map[string]any{"groups": tt.groups}
			resp := s.arrive(s.visit(t, "/nodes?state=stuck"))
			cookie := sessionCookie(resp)
			if (tt.role != "") != (cookie != nil) {
				t.Fatalf("got %d with the cookie %v: %s", resp.Code, cookie, resp.Body)
			}
			if tt.role == "" {
				if resp.Code != http.StatusForbidden {
					t.Errorf("got %d", resp.Code)
				}
				return
			}
			if !strings.Contains(resp.Body.String(), `content="0; url=/nodes?state=stuck"`) {
				t.Errorf("it does not go on: %s", resp.Body)
			}
			s.tryRoles(t, tt.role, cookie)
			for pool, node := range map[string]string{"compute": "m1"} {
				code := s.do(request{path: "/change?do=next&pick=" + node, anonymous: true, header: cookie}).Code
				if want := map[bool]int{true: 200, false: 403}[tt.role != pools.RoleViewer]; code != want {
					t.Errorf("the form of a node of %s: got %d, want %d", pool, code, want)
				}
			}
			s.secretsStay(t)
		})
	}
}

// tryRoles tries a session at each route.
func (s *harness) tryRoles(t *testing.T, role pools.Role, cookie map[string]string) {
	t.Helper()
	table := s.Routes()
	for i := range table {
		r, q := &table[i], sample(&table[i])
		q.header = cookie
		may := role.Includes(r.Role) && !r.Secret && !r.Changes()
		if resp := s.do(q); (resp.Code != 401 && resp.Code != 403) != may {
			t.Errorf("%s %s: got %d, want allowed %v", q.method, q.path, resp.Code, may)
		}
	}
}

// secretsStay checks that no secret of a login is in the log.
func (s *harness) secretsStay(t *testing.T) {
	t.Helper()
	for _, secret := range []string{oidcsim.ClientSecret, oidcsim.AccessToken, "eyJ", "code=", "state=", oidcsim.ErrorText} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, s.log)
		}
	}
}

// TestOIDCAudit: a change names the person, and the role of a group that the config takes away
// is gone at once.
func TestOIDCAudit(t *testing.T) {
	s, p := withProvider(t)
	roles := groupRoles
	s.Groups = func() []pools.Grant { return roles }
	s.http = s.Server.Handler()
	p.Claims = map[string]any{"groups": []string{"farm-admins"}, "email": "alice@example.org", "email_verified": true}
	cookie := sessionCookie(s.arrive(s.visit(t, "/")))
	s.changeAs(cookie, url.Values{"do": {"next"}, "pick": {"m1"}, "in-next": {"local"}})
	all := s.Audit.(*machines).audit
	if len(all) == 0 || !strings.HasPrefix(all[0].Actor, "oidc alice@example.org from ") {
		t.Errorf("the audit has %+v", all)
	}
	if !strings.Contains(s.log.String(), "oidc alice@example.org from ") {
		t.Errorf("the log does not name her: %s", s.log)
	}
	roles = groupRoles[:2]
	if got := s.do(request{path: "/api/v1/nodes", anonymous: true, header: cookie}).Code; got != 401 {
		t.Errorf("after her group lost its role: got %d", got)
	}
}

// TestOIDCRefused: a login that fails begins no session. The browser gets the login again, and the
// log has the reason. The tests of web/auth/oidc have all reasons.
func TestOIDCRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		claims map[string]any
		edit   func(*visit)
		log    string // part of it
	}{
		"another nonce":   {claims: map[string]any{"nonce": "x"}, log: "nonce"},
		"another browser": {edit: func(v *visit) { v.cookie = "a=b" }, log: "no cookie"},
		"another code":    {edit: func(v *visit) { v.back = strings.Replace(v.back, "code=", "code=X", 1) }, log: "invalid_grant"},
		"refused":         {edit: func(v *visit) { v.back = strings.Replace(v.back, "code=", "error=access_denied&x=", 1) }, log: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withProvider(t)
			p.Claims = map[string]any{"groups": []string{"farm-admins"}}
			maps.Copy(p.Claims, tt.claims)
			v := s.visit(t, "/")
			if tt.edit != nil {
				tt.edit(&v)
			}
			resp := s.arrive(v)
			if resp.Code != http.StatusForbidden || sessionCookie(resp) != nil || !strings.Contains(resp.Body.String(), `role="alert"`) {
				t.Errorf("got %d with %v: %s", resp.Code, resp.Cookies(), resp.Body)
			}
			if !strings.Contains(s.log.String(), tt.log) {
				t.Errorf("the log does not say why (%s): %s", tt.log, s.log)
			}
			s.secretsStay(t)
		})
	}
}

// TestOIDCNext: a login leads to this server only.
func TestOIDCNext(t *testing.T) {
	s, p := withProvider(t)
	p.Claims = map[string]any{"groups": []string{"watchers"}}
	for next, want := range map[string]string{
		"https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/", "javascript:alert(1)": "/", "/nodes/m1": "/nodes/m1",
		"/x\" onload=": "/x%22%20onload=", "/" + strings.Repeat("a", 2000): "/", "": "/", "/%2f/evil.example": "/",
	} {
		body := s.arrive(s.visit(t, next)).Body.String()
		if !strings.Contains(body, `content="0; url=`+want+`"`) {
			t.Errorf("%q: %s", next, body)
		}
	}
}

// TestOIDCDown: a provider that is down, or is another one, keeps nobody out who has a token.
func TestOIDCDown(t *testing.T) {
	for name, issuer := range map[string]func(*oidcsim.Provider) string{
		"down":           func(*oidcsim.Provider) string { return "http://127.0.0.1:1" },
		"another issuer": func(p *oidcsim.Provider) string { return p.URL + "/" },
	} {
		s := newHarness(t, func(h *harness) {
			p := oidcsim.New(t, func() time.Time { return h.now })
			h.Provider = oidc.New(pools.OIDC{Issuer: issuer(p), ClientID: oidcsim.ClientID, URL: "http://localhost:8443"}, nil, nil, func() time.Time { return h.now })
		})
		resp := s.do(request{path: "/login/oidc", anonymous: true})
		if resp.Code != http.StatusServiceUnavailable || !strings.Contains(resp.Body.String(), "does not answer as it should") {
			t.Errorf("%s: got %d: %s", name, resp.Code, resp.Body)
		}
		s.session(t)
	}
	s := newHarness(t)
	for _, path := range []string{"/login/oidc", oidc.CallbackPath} {
		if resp := s.do(request{path: path, anonymous: true}); resp.Code != http.StatusNotFound {
			t.Errorf("without a provider, %s: got %d", path, resp.Code)
		}
	}
}

// TestOIDCLimit: codes that the provider does not take are slowed, and what never reaches it
// does not count.
func TestOIDCLimit(t *testing.T) {
	s, p := withProvider(t)
	p.Claims = map[string]any{"groups": []string{"watchers"}}
	for range 20 {
		s.do(request{path: oidc.CallbackPath + "?code=x&state=y", anonymous: true})
	}
	good := s.visit(t, "/")
	for i, want := range []int{403, 403, 403, 403, 403, 429, 429} {
		v := s.visit(t, "/")
		v.back = strings.Replace(v.back, "code=", "code=X", 1)
		if got := s.arrive(v).Code; got != want {
			t.Errorf("wrong code %d: got %d, want %d", i+1, got, want)
		}
	}
	if p.Asked != 5 {
		t.Errorf("the provider was asked %d times", p.Asked)
	}
	s.session(t) // tokens have their own limit
	s.now = s.now.Add(3 * time.Second)
	if sessionCookie(s.arrive(good)) == nil {
		t.Error("after a pause: no session")
	}
}

// TestSecureBehindProxy: cookies are for HTTPS alone if browsers come by HTTPS, also where a
// proxy ends it.
func TestSecureBehindProxy(t *testing.T) {
	for url, secure := range map[string]bool{"https://drover.example.org": true, "http://localhost:8443": false} {
		s := newHarness(t, func(h *harness) {
			h.Provider = oidc.New(pools.OIDC{Issuer: "https://login.example.org", ClientID: oidcsim.ClientID, URL: url}, nil, nil, func() time.Time { return h.now })
		})
		resp := s.do(form(secret))
		if len(resp.Cookies()) != 1 {
			t.Fatalf("%s: got %d", url, resp.Code)
		}
		if c := resp.Cookies()[0]; c.Secure != secure || strings.HasPrefix(c.Name, "__Host-") != secure {
			t.Errorf("%s: got cookie %s", url, c)
		}
	}
}
