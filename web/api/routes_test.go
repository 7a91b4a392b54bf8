package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/answer"
	"drover/web/api"
	"drover/web/openapi"
	"drover/web/route"
)

const node = `{"pool": "compute", "name": "n3", "macs": ["02:00:00:00:00:03"], "ip": "10.28.0.13"}`

// sample is a good request of a route that changes something.
type sample struct {
	path, body string // path: with the names of the route
	only       bool   // there is no try
	silent     bool   // it leaves no entry in the audit
}

// samples has one for each such route: a new one needs its own here.
var samples = map[string]sample{
	"POST /api/v1/nodes":                     {body: node},
	"PATCH /api/v1/nodes/{name}":             {path: "/api/v1/nodes/n2", body: `{"tags": ["debug"]}`},
	"DELETE /api/v1/nodes/{name}":            {path: "/api/v1/nodes/n2"},
	"POST /api/v1/nodes:batch":               {body: `{"changes": [{"new": ` + node + `}]}`},
	"PUT /api/v1/nodes/{name}/next-boot":     {path: "/api/v1/nodes/m1/next-boot", body: `{"nextBoot": "local"}`},
	"DELETE /api/v1/nodes/{name}/next-boot":  {path: "/api/v1/nodes/m1/next-boot"},
	"POST /api/v1/chassis/{name}/sync":       {path: "/api/v1/chassis/hw/sync"},
	"POST /api/v1/power":                     {body: `{"action": "on", "nodes": ["m1"]}`, silent: true}, // the job has its own
	"DELETE /api/v1/boots/{node}":            {path: "/api/v1/boots/m1"},
	"DELETE /api/v1/leases/{address}":        {path: "/api/v1/leases/10.28.72.10"},
	"DELETE /api/v1/unknown/{mac}":           {path: "/api/v1/unknown/52:54:00:00:00:77"},
	"DELETE /api/v1/retired/{name}":          {path: "/api/v1/retired/gone"},
	"POST /api/v1/tokens":                    {body: `{"name": "new", "role": "viewer"}`},
	"POST /api/v1/tokens/{name}/rotate":      {path: "/api/v1/tokens/ci/rotate"},
	"DELETE /api/v1/tokens/{name}":           {path: "/api/v1/tokens/ci"},
	"POST /api/v1/images:promote":            {body: `{"image": "debian-12@0123456789ab"}`},
	"POST /api/v1/images:rollback":           {body: `{"image": "debian-12"}`},
	"POST /api/v1/images:mark":               {body: `{"image": "debian-12@0123456789ab"}`},
	"POST /api/v1/config:reload":             {only: true},
	"POST /api/v1/config:check":              {body: `{"content": "pools: []"}`, silent: true}, // it changes nothing
	"POST /api/v1/config:answer":             {body: `{"sha256": "` + sum + `"}`, only: true},
	"POST /api/v1/configs/{number}/rollback": {path: "/api/v1/configs/1/rollback"},
	"POST /api/v1/state:restore":             {body: `{"sha256": "` + sum + `"}`, silent: true}, // the restored server has it
}

// sampled returns the requests of all routes that change something, with a server for each that
// has the node n2 and a boot of m1.
func sampled(t *testing.T, do func(t *testing.T, s *server, r route.Route, q sample)) {
	t.Helper()
	for _, r := range (&api.API{}).Routes() {
		if !r.Changes() {
			continue
		}
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			q, ok := samples[r.Method+" "+r.Path]
			if !ok {
				t.Fatal("it has no sample")
			}
			if q.path == "" {
				q.path = r.Path
			}
			s := newServer(t)
			s.boots = records("m1")
			if resp := s.do("POST", api.NodesPath, strings.NewReplacer("n3", "n2", "00:03", "00:02", "0.13", "0.14").Replace(node)); resp.Code != 201 {
				t.Fatalf("n2: got %d %s", resp.Code, resp.Body)
			}
			s.calls, s.entries = nil, nil
			do(t, s, r, q)
		})
	}
}

// TestTable: each route has a right, a summary, a handler and answers that fit together, and there
// is one of each.
func TestTable(t *testing.T) {
	roles := map[string]bool{}
	for _, r := range pools.Roles() {
		roles[string(r)] = true
	}
	seen := map[string]bool{}
	path := regexp.MustCompile(`^/api/v1/[a-z]+(/\{[a-z]+\}(/[a-z-]+)?)?(:[a-z]+)?$`)
	for _, r := range (&api.API{}).Routes() {
		name := r.Method + " " + r.Path
		list := r.Answer != nil && reflect.TypeOf(r.Answer).Kind() == reflect.Slice
		for _, rule := range []struct {
			good bool
			what string
		}{
			{!seen[name], "it is there twice"},
			{path.MatchString(r.Path), "its path is none"},
			{roles[string(r.Role)] && r.Role.Includes(pools.RoleViewer), "its role is none of a client of the API"},
			{!r.Changes() || r.Role.Includes(pools.RoleOperator), "a viewer may change something"},
			{!r.Secret || r.Role.Includes(pools.RoleAdmin), "a secret is not for admins alone"},
			{r.Summary != "" && !strings.HasSuffix(r.Summary, "."), "its summary is no sentence without its full stop"},
			{r.Handle != nil, "it has no handler"},
			{r.Status >= 200 && r.Status < 300, "its status is none of a good answer"},
			{(r.Status == 204) == (r.Answer == nil && r.Status == 204), "its answer has no body and a type"},
			{r.Body == nil || r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH", "it has a body that clients do not send"},
			{r.Patch == (r.Method == "PATCH"), "a PATCH is a merge patch"},
			{!r.Patch || r.Body != nil, "a patch is of nothing"},
			{!r.Watch || list && !r.Changes(), "a watch is of a list"},
			{!list || hasParameter(&r, "limit"), "a list has no bound"},
			{!r.Conditional || strings.HasPrefix(r.Path, api.NodesPath+"/"), "only nodes have an ETag"},
			{r.Method != "DELETE" || r.Status == 204, "a DELETE answers with 204"},
		} {
			if !rule.good {
				t.Errorf("%s: %s", name, rule.what)
			}
		}
		for _, code := range r.Errors {
			if code < 400 || code > 599 {
				t.Errorf("%s: %d is no error", name, code)
			}
		}
		seen[name] = true
	}
	if len(seen) < 30 {
		t.Errorf("the table has %d routes", len(seen))
	}
}

func hasParameter(r *route.Route, name string) bool {
	for _, p := range r.Parameters() {
		if p.Name == name {
			return p.About != ""
		}
	}
	return false
}

// TestDocumented: the document has each route, with the same role.
func TestDocumented(t *testing.T) {
	table := (&api.API{}).Routes()
	text, err := json.Marshal(openapi.Document(table))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Role string `json:"x-role"`
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, methods := range doc.Paths {
		n += len(methods)
	}
	for _, r := range table {
		if got := doc.Paths[r.Path][strings.ToLower(r.Method)].Role; got != string(r.Role) {
			t.Errorf("%s %s: the document has the role %q, want %q", r.Method, r.Path, got, r.Role)
		}
	}
	if n != len(table) {
		t.Errorf("the document has %d operations, the table %d", n, len(table))
	}
}

// TestNobody: no route does or tells anything without a client, or with one whose role is not
// enough. The session of a browser changes nothing here, and reads no secrets.
func TestNobody(t *testing.T) {
	s := newServer(t)
	less := map[pools.Role]pools.Role{pools.RoleAdmin: pools.RoleOperator, pools.RoleOperator: pools.RoleViewer, pools.RoleViewer: pools.RoleMetrics}
	weaker := map[pools.Role]string{}
	for role, lower := range less {
		weaker[role] = s.as(t, lower)
	}
	names := regexp.MustCompile(`\{[a-z]+\}`)
	for _, r := range s.Routes() {
		req := func(set func(*http.Request)) *http.Request {
			q := request(r.Method, names.ReplaceAllString(r.Path, "m1"), samples[r.Method+" "+r.Path].body)
			q.Header.Del("Authorization")
			set(q)
			return q
		}
		check := func(what string, q *http.Request, code int) {
			t.Helper()
			if resp := s.send(q); resp.Code != code || resp.Header().Get("Content-Type") != answer.ProblemType {
				t.Errorf("%s %s with %s: got %d %s", r.Method, r.Path, what, resp.Code, resp.Body)
			}
		}
		check("nothing", req(func(*http.Request) {}), 401)
		check("a wrong token in the query", req(func(q *http.Request) { q.URL.RawQuery = "token=" + token }), 401)
		check("a weaker token", req(func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+weaker[r.Role]) }), 403)
		if r.Changes() || r.Secret {
			check("a session", req(func(q *http.Request) { q.AddCookie(s.cookie) }), 401)
		}
		w := httptest.NewRecorder()
		s.API.Handler().ServeHTTP(w, request(r.Method, names.ReplaceAllString(r.Path, "m1"), ""))
		if w.Code != 401 {
			t.Errorf("%s %s without what authenticates: got %d", r.Method, r.Path, w.Code)
		}
	}
	if len(s.calls) > 0 || len(s.entries) > 0 {
		t.Errorf("it did %q", s.calls)
	}
	fixture.WantNoText(t, "the log", s.log.String(), token)
}

// TestChanges: a good request makes the change, and leaves one entry in the audit with the client.
func TestChanges(t *testing.T) {
	sampled(t, func(t *testing.T, s *server, r route.Route, q sample) {
		resp := s.do(r.Method, q.path, q.body)
		if resp.Code != r.Status || (resp.Body.Len() > 0) != (r.Answer != nil) {
			t.Fatalf("got %d %s, want %d", resp.Code, resp.Body, r.Status)
		}
		if len(s.calls) == 0 && r.Path != "/api/v1/config:check" {
			t.Error("nothing was done")
		}
		want := 1
		if q.silent {
			want = 0
		}
		if len(s.entries) != want {
			t.Errorf("the audit has %+v", s.entries)
		}
		for _, e := range s.entries {
			if e.Actor != "token from 192.0.2.1:1234" || e.Action == "" || !e.Time.Equal(epoch) || e.Result != "done" {
				t.Errorf("the audit has %+v", e)
			}
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			fixture.WantNoText(t, "the audit", string(text), "hunter2")
		}
		fixture.WantNoText(t, "the log", s.log.String(), "hunter2", token)
	})
}

// TestDryRun: a try changes nothing and leaves no entry, and one that is misspelled is refused.
func TestDryRun(t *testing.T) {
	sampled(t, func(t *testing.T, s *server, r route.Route, q sample) {
		resp := s.do(r.Method, q.path+"?dryRun=true", q.body)
		switch {
		case q.only && resp.Code != 400:
			t.Errorf("got %d %s: it has no try", resp.Code, resp.Body)
		case !q.only && resp.Code >= 300:
			t.Errorf("got %d %s", resp.Code, resp.Body)
		}
		for _, query := range []string{"dryRun", "dryRun=", "dryRun=1", "dryRun=True", "dryrun=true", "dryRun=true&dryRun=false", "dry-run=true", "dryRun=%00"} {
			if resp := s.do(r.Method, q.path+"?"+query, q.body); resp.Code != 400 {
				t.Errorf("%s: got %d %s", query, resp.Code, resp.Body)
			}
		}
		if len(s.calls) > 0 || len(s.entries) > 0 {
			t.Errorf("it did %q", s.calls)
		}
		fixture.WantNoText(t, "the answer", resp.Body.String(), "hunter2")
	})
}

// TestBodies: a body that is none of the route, or too long, does nothing.
func TestBodies(t *testing.T) {
	sampled(t, func(t *testing.T, s *server, r route.Route, q sample) {
		if r.Body == nil {
			return
		}
		for _, tt := range []struct {
			what, kind, body string
			code             int
		}{
			{"no type", "", q.body, 415},
			{"a form", "application/x-www-form-urlencoded", q.body, 415},
			{"YAML", "application/yaml", q.body, 415},
			{"nothing", "application/json", " ", 400},
			{"half", "application/json", q.body[:len(q.body)-1], 400},
			{"two", "application/json", q.body + q.body, 400},
			{"a list", "application/json", "[" + q.body + "]", 400},
			{"null", "application/json", "null", 400},
			{"another field", "application/json", strings.Replace(q.body, "{", `{"nope": 1, `, 1), 400},
			{"not UTF-8", "application/json", strings.Replace(q.body, "{", "{\"\xff\": 1, ", 1), 400},
			{"deep", "application/json", strings.Repeat("[", 100_000), 400},
			{"too long", "application/json", strings.Replace(q.body, "{", "{"+strings.Repeat(" ", answer.MaxBody), 1), 413},
		} {
			req := request(r.Method, q.path, tt.body)
			req.Header.Set("Content-Type", tt.kind)
			resp := s.send(req)
			if resp.Code != tt.code || resp.Header().Get("Content-Type") != answer.ProblemType {
				t.Errorf("%s: got %d %.300s, want %d", tt.what, resp.Code, resp.Body, tt.code)
			}
		}
		if len(s.calls) > 0 || len(s.entries) > 0 {
			t.Errorf("it did %q", s.calls)
		}
	})
}

// TestReads: each route that reads answers with its status, or says that there is no such thing.
// What is secret must not be kept, nor compressed.
func TestReads(t *testing.T) {
	s := newServer(t)
	s.boots = records("m1")
	names := strings.NewReplacer("{name}", "m1", "{cluster}", "tenant-a", "{id}", "j1", "{number}", "1")
	for _, r := range s.Routes() {
		if r.Changes() {
			continue
		}
		path := names.Replace(r.Path)
		if r.Path == "/api/v1/plan" {
			path += "?node=m1"
		}
		q := request("GET", path, "")
		q.Header.Set("Accept-Encoding", "gzip")
		resp := s.send(q)
		if resp.Code != r.Status || r.Secret && resp.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: got %d %v %s", path, resp.Code, resp.Header(), resp.Body)
		}
		if resp := s.do("GET", path+"&nope=1", ""); resp.Code < 400 {
			t.Errorf("%s: an unknown parameter: got %d", path, resp.Code)
		}
	}
	if len(s.calls) > 0 {
		t.Errorf("reading did %q", s.calls)
	}
}
