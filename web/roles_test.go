package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/web"
	"drover/web/api"
	"drover/web/route"
)

// examples are names in paths that exist.
var examples = strings.NewReplacer("{cluster}", "tenant-a", "{name}", "m1", "{number}", "1", "{node}", "m1", "{id}", "j1", "{address}", "10.28.72.10", "{mac}", "52:54:00:00:00:77")

// sample returns a request that a route accepts, or refuses for what it has, not for the
// client that it is of.
func sample(r *route.Route) request {
	q := request{method: r.Method, path: examples.Replace(r.Path), anonymous: true}
	if r.Changes() {
		q.path += "?dryRun=true"
	}
	if r.Body != nil {
		q.body = "{}"
	}
	return q
}

// TestRoles: each role may use exactly the routes that the table gives it, with a token, with
// the session of a browser, with a certificate and over the unix socket, and nobody may use
// one without.
func TestRoles(t *testing.T) {
	for _, role := range pools.Roles() {
		t.Run(string(role), func(t *testing.T) { testRole(t, role) })
	}
	s := newHarness(t)
	if resp := s.do(form(s.token(t, pools.RoleMetrics))); resp.Code != 403 || len(resp.Cookies()) > 0 {
		t.Errorf("the page with a token for metrics: got %d", resp.Code)
	}
}

func testRole(t *testing.T, role pools.Role) {
	s, certificate, socket := connected(t, role)
	table := append((&api.API{}).Routes(), route.Route{Method: "GET", Path: "/metrics", Role: pools.RoleMetrics})
	try := func(q request, header map[string]string, want bool, refused int) {
		t.Helper()
		q.header = header
		resp := s.do(q)
		if got := resp.Code != 401 && resp.Code != 403; got != want || !want && resp.Code != refused {
			t.Errorf("%s %s: got %d, want allowed %v", q.method, q.path, resp.Code, want)
		}
	}
	token := s.token(t, role)
	var cookie map[string]string
	if role != pools.RoleMetrics {
		cookie = s.sessionOf(t, token)
	}
	for i := range table {
		r, q := &table[i], sample(&table[i])
		may := role.Includes(r.Role)
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			try(q, bearer(token), may, 403)
			try(q, nil, false, 401)
			for name, send := range map[string]func(*testing.T, request) int{"a certificate": certificate, "the socket": socket} {
				if got := send(t, q); (got != 401 && got != 403) != may || !may && got != 403 {
					t.Errorf("%s %s with %s: got %d, want allowed %v", q.method, q.path, name, got, may)
				}
			}
			if cookie == nil {
				return
			}
			refused := 403
			if r.Secret || r.Changes() {
				refused = 401
			}
			try(q, cookie, may && !r.Secret && !r.Changes(), refused)
		})
	}
}

// connected returns a server that listens, and functions that send it requests of a client
// whose certificate has a role, and over a socket that has it. They return the status.
func connected(t *testing.T, role pools.Role) (s *harness, certificate, socket func(*testing.T, request) int) {
	t.Helper()
	people, path := newAuthority(t), filepath.Join(t.TempDir(), "s")
	conf, transport := secure(people)
	s = newHarness(t, func(h *harness) {
		h.Leases, h.Unknowns = someLeases(), someUnknowns()
		h.Addr, h.TLS = "127.0.0.1:0", conf
		h.Grants = func() []pools.Grant { return []pools.Grant{{Name: "bob", Role: role}} }
		h.Socket = &web.Socket{Path: path, Group: strconv.Itoa(os.Getgid()), Role: role}
	})
	addr, _ := serveSocket(t, s)
	over := func(client *http.Client, base string) func(*testing.T, request) int {
		t.Cleanup(client.CloseIdleConnections)
		return func(t *testing.T, q request) int {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), q.method, base+q.path, strings.NewReader(q.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp.StatusCode
		}
	}
	certificate = over(&http.Client{Transport: transport(people.client("bob"))}, "https://"+addr)
	return s, certificate, over(socketClient(path), "http://localhost")
}

// TestOperatorOfPools: an operator of some pools changes only what belongs to them.
func TestOperatorOfPools(t *testing.T) {
	const nodes, batch = "/api/v1/nodes", "/api/v1/nodes:batch"
	inStorage := strings.Replace(n3, "compute", "storage", 1)
	for _, tt := range []struct {
		name, method, path, body string
		code                     int
	}{
		{"add to its pool", "POST", nodes, strings.NewReplacer("compute", "storage", "n3", "n4", "00-03", "00-04", "0.13", "0.14").Replace(n3), 201},
		{"add to another pool", "POST", nodes, strings.NewReplacer("n3", "n4", "00-03", "00-04", "0.13", "0.14").Replace(n3), 403},
		{"try to add to another pool", "POST", nodes + "?dryRun=true", strings.NewReplacer("n3", "n4").Replace(n3), 403},
		{"change a node", "PATCH", nodes + "/n3", `{"tags": ["gpu"]}`, 200},
		{"a tag of another pool", "PATCH", nodes + "/n3", `{"tags": ["blue"]}`, 403},
		{"add with a tag of another pool", "POST", nodes, strings.NewReplacer("compute", "storage", "n3", "n4", "00-03", "00-04", "0.13", "0.14", "debug", "blue").Replace(n3), 403},
		{"an address of another pool's range", "PATCH", nodes + "/n3", `{"ip": "10.28.72.15"}`, 403},
		{"the router's address", "PATCH", nodes + "/n3", `{"ip": "10.28.0.1"}`, 403},
		{"move a node away", "PATCH", nodes + "/n3", `{"pool": "compute"}`, 403},
		{"take a node of another pool", "PATCH", nodes + "/n9", `{"pool": "storage"}`, 403},
		{"change a node of another pool", "PATCH", nodes + "/n9", `{"tags": []}`, 403},
		{"remove a node", "DELETE", nodes + "/n3", "", 204},
		{"remove a node of another pool", "DELETE", nodes + "/n9", "", 403},
		{"a batch of its own", "POST", batch, `{"changes": [{"old": ` + inStorage + `}]}`, 200},
		{"a batch with a node of another pool", "POST", batch, `{"changes": [{"old": ` + inStorage + `}, {"new": ` + strings.Replace(n3, "n3", "n5", 1) + `}]}`, 403},
		{"a batch that says another pool", "POST", batch, `{"changes": [{"old": ` + strings.NewReplacer("compute", "storage", "n3", "n9", "00-03", "00-09", "0.13", "0.19").Replace(n3) + `}]}`, 409},
		{"next boot", "PUT", nodes + "/n3/next-boot", `{"nextBoot": "local"}`, 200},
		{"next boot of another pool", "PUT", nodes + "/m1/next-boot", `{"nextBoot": "local"}`, 403},
		{"no next boot of another pool", "DELETE", nodes + "/m1/next-boot", "", 403},
		{"switch", "POST", "/api/v1/power", `{"action": "off", "nodes": ["n3"]}`, 202},
		{"switch another one", "POST", "/api/v1/power", `{"action": "off", "nodes": ["n3", "m1"]}`, 403},
		{"switch a pool", "POST", "/api/v1/power", `{"action": "off", "pool": "compute"}`, 403},
		{"end a lease of another pool", "DELETE", "/api/v1/leases/10.28.72.10", "", 403},
		{"forget an unknown machine of another pool", "DELETE", "/api/v1/unknown/52:54:00:00:00:77", "", 403},
		{"forget an unknown machine of none", "DELETE", "/api/v1/unknown/52:54:00:00:00:66", "", 403},
		{"forget boots of another pool", "DELETE", "/api/v1/boots/m1", "", 403},
		{"read a chassis of another pool", "POST", "/api/v1/chassis/m1/sync", "", 403},
		{"read a node of another pool", "GET", nodes + "/m1", "", 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &machines{}
			s := newHarness(t, func(s *harness) {
				s.Boots = bootList{boot(1, "m1", "tenant-a", 6, time.Minute, "")}
				s.Hardware, s.Power, s.Audit, s.Leases, s.Unknowns = m, m, m, someLeases(), someUnknowns()
			})
			n9 := strings.NewReplacer("n3", "n9", "00-03", "00-09", "0.13", "0.19").Replace(n3)
			for _, n := range []string{inStorage, n9} {
				if resp := s.do(request{method: "POST", path: nodes, body: n}); resp.Code != 201 {
					t.Fatal(resp.Body)
				}
			}
			m.audit = nil
			token := s.token(t, pools.RoleOperator, "storage")
			resp := s.do(request{method: tt.method, path: tt.path, body: tt.body, anonymous: true, header: bearer(token)})
			if resp.Code != tt.code {
				t.Errorf("got %d, want %d: %s", resp.Code, tt.code, resp.Body)
			}
			done := tt.method != "GET" && tt.code < 300 && !strings.Contains(tt.path, "power")
			if (len(m.audit) > 0) != done || done && !strings.HasPrefix(m.audit[0].Actor, "token operator-0 from 192.0.2.1:") {
				t.Errorf("the audit is %+v", m.audit)
			}
			if asked := len(m.asked) > 0; asked != (tt.code == 202) {
				t.Errorf("asked %q", m.asked)
			}
		})
	}
}

// TestTokens: tokens are made, listed, rotated and revoked over the API, end in time, and are
// stored as hashes alone.
func TestTokens(t *testing.T) {
	s := newHarness(t)
	get := func(token string, want int) {
		t.Helper()
		if resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: bearer(token)}); resp.Code != want {
			t.Errorf("got %d, want %d", resp.Code, want)
		}
		s.now = s.now.Add(3 * time.Second) // no limit of wrong tokens
	}
	post := func(path, body string, want int) (made pools.NewAPIToken) {
		t.Helper()
		resp := s.do(request{method: "POST", path: "/api/v1/tokens" + path, body: body})
		if resp.Code != want {
			t.Errorf("%s %s: got %d, want %d: %s", path, body, resp.Code, want, resp.Body)
		}
		decodeJSON(t, resp, &made)
		return made
	}
	ci := post("", `{"name": "ci", "role": "viewer", "ttl": "1h"}`, 201)
	get(ci.Token, 200)
	cookie := s.sessionOf(t, ci.Token)
	second := post("/ci/rotate", "", 200)
	get(ci.Token, 401)
	get(second.Token, 200)
	if resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: cookie}); resp.Code != 401 {
		t.Errorf("the session of a rotated token: got %d", resp.Code)
	}
	post("", `{"name": "ci", "role": "viewer"}`, 409)
	cookie = s.sessionOf(t, second.Token)
	s.now = s.now.Add(time.Hour)
	get(second.Token, 401)
	if resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: cookie}); resp.Code != 401 {
		t.Errorf("the session of an expired token: got %d", resp.Code)
	}
	third := post("", `{"name": "ci", "role": "operator", "pools": ["compute"]}`, 201)
	list := s.do(request{path: "/api/v1/tokens"}).Body.String()
	file, err := os.ReadFile("api-tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat("api-tokens.json")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	for _, token := range []string{ci.Token, second.Token, third.Token} {
		if len(token) != 64 || strings.Contains(list+string(file)+s.log.String(), token) {
			t.Errorf("the token %q is in the list, the file or the log", token)
		}
	}
	for body, want := range map[string]string{
		`{"name": "x", "role": "root"}`:                         "unknown role",
		`{"name": "X y", "role": "viewer"}`:                     "is not a name of a token",
		`{"name": "x", "role": "viewer", "pools": ["compute"]}`: "not limited to pools",
		`{"name": "x", "role": "operator", "pools": ["none"]}`:  "unknown pool",
		`{"name": "x", "role": "operator", "pools": []}`:        "pools is empty",
		`{"name": "x", "role": "operator", "pools": [""]}`:      "unknown pool",
		`{"name": "x", "role": "viewer", "secret": "y"}`:        "unknown key",
	} {
		if resp := s.do(request{method: "POST", path: "/api/v1/tokens", body: body}); resp.Code != 400 || !strings.Contains(resp.Body.String(), want) {
			t.Errorf("%s: got %d %s", body, resp.Code, resp.Body)
		}
	}
	post("?dryRun=true", `{"name": "y", "role": "viewer"}`, 200)
	if n := len(s.Named.List()); n != 1 {
		t.Errorf("there are %d tokens", n)
	}
	get(third.Token, 200)
	for _, want := range []int{204, 404} {
		if resp := s.do(request{method: "DELETE", path: "/api/v1/tokens/ci"}); resp.Code != want {
			t.Errorf("revoke: got %d, want %d", resp.Code, want)
		}
	}
	get(third.Token, 401)
}

// TestWrongTokens: wrong tokens are slowed, and keep no other client of the address out.
func TestWrongTokens(t *testing.T) {
	s := newHarness(t)
	good := s.token(t, pools.RoleViewer)
	codes := map[int]int{}
	for range 50 {
		resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: bearer("guess")})
		codes[resp.Code]++
		if resp.Code == http.StatusTooManyRequests && resp.Header().Get("Retry-After") == "" {
			t.Error("429 does not say when")
		}
		for _, token := range []string{good, secret} {
			if resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: bearer(token)}); resp.Code != 200 {
				t.Fatalf("a right token among guesses: got %d", resp.Code)
			}
		}
	}
	if codes[401] != 5 || codes[429] != 45 {
		t.Errorf("got %v", codes)
	}
	s.now = s.now.Add(3 * time.Second)
	if resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: bearer("guess")}); resp.Code != 401 {
		t.Errorf("later: got %d", resp.Code)
	}
}
