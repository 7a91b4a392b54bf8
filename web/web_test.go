package web_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/resolve"
	"drover/web"
	"drover/web/api"
	"drover/web/auth"
)

const secret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// farmText is the operator's file of the tests; nodes m1 and m2 are in lines 7
// and 8.
const farmText = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1}]
clusters: [{name: tenant-a, kubeconfig: a.kubeconfig}, {name: lobby, kubeconfig: l.kubeconfig}]
tags: {debug: {kernelArgs: debug}, gpu: {labels: {gpu: "yes"}}}
pools:
  - {name: compute, cluster: tenant-a, image: debian-12, delegates: [gpu, debug], nodes: [
      {name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11},
      {name: m2, macs: ["52:54:00:00:00:02", "52:54:00:00:01:02"], ip: 10.28.0.12, tags: [gpu]}]}
  - {name: storage, image: debian-12, delegates: [gpu, debug]}
  - {name: catchall, catchall: true, cluster: lobby, image: debian-12, range: 10.28.72.10-10.28.72.20}
`

// memory is a node store in memory.
type memory struct {
	mu    sync.Mutex
	nodes map[string]pools.PoolNode
	err   error // returned by all methods, when set
}

func (m *memory) Nodes() ([]pools.PoolNode, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.nodes)), m.err
}

func (m *memory) ChangeNodes(put []pools.PoolNode, remove []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	for _, n := range put {
		m.nodes[n.Name] = n
	}
	for _, name := range remove {
		delete(m.nodes, name)
	}
	return nil
}

type bootList []boots.Record

func (b bootList) List() []boots.Record { return slices.Clone(b) }

func (b bootList) Forget(string) int { return 0 }

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// harness is a server with a real farm.
type harness struct {
	*web.Server
	*api.API
	store *memory
	live  *config.Live
	log   *bytes.Buffer
	now   time.Time
	http  http.Handler
	t     *testing.T
}

func newHarness(t *testing.T, set ...func(*harness)) *harness {
	t.Helper()
	t.Chdir(t.TempDir()) // so that the file is named drover.yaml
	if err := os.WriteFile("drover.yaml", []byte(farmText), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &harness{store: &memory{nodes: map[string]pools.PoolNode{}}, log: &bytes.Buffer{}, now: epoch, t: t}
	live, err := config.NewLive(config.Source{File: "drover.yaml"}, s.store)
	if err != nil {
		t.Fatal(err)
	}
	s.live = live
	tokens, err := auth.OpenTokens("api-tokens.json", func() time.Time { return s.now })
	if err != nil {
		t.Fatal(err)
	}
	m := &machines{}
	s.API = &api.API{
		Farm: live, Nodes: live, Boots: bootList(nil), Leases: &leases{}, Unknowns: &unknowns{},
		NextBoots: &nextBoots{next: map[string]pools.NextBoot{}}, Hardware: m, Power: m, Audit: m, Tokens: sharedTokens{}, APITokens: tokens, ConfigFile: configFile{}, Channels: channels{}, FallBacks: fallBacks{}, Configs: configFile{}, Restorer: &restorer{},
		Plans:      plans{live},
		Images:     func() []pools.ImageInfo { return slices.Clone(someImages) },
		Ready:      func(context.Context) []api.Problem { return nil },
		CheckImage: func(string) error { return nil },
		Moves:      func() []pools.Move { return nil },
		Log:        slog.New(slog.NewTextHandler(s.log, nil)),
		Now:        func() time.Time { return s.now },
	}
	s.Server = &web.Server{API: s.API, Token: auth.NewToken(secret), Named: tokens}
	for _, f := range set {
		f(s)
	}
	s.http = s.Server.Handler()
	return s
}

// request is a request of a client. The zero method is GET, the zero content type is
// JSON, the zero host is localhost, and the request has the right token unless it is
// anonymous.
type request struct {
	method, path, body, contentType, host string

	header    map[string]string
	anonymous bool
}

// answer is an answer of the server.
type answer struct {
	*httptest.ResponseRecorder
}

// Cookies returns the cookies that the answer sets.
func (a answer) Cookies() (all []*http.Cookie) {
	for _, line := range a.Header()["Set-Cookie"] {
		if c, err := http.ParseSetCookie(line); err == nil {
			all = append(all, c)
		}
	}
	return all
}

func (s *harness) do(r request) answer {
	w, req := s.send(r)
	checkAnswer(s.t, req, w.Result())
	return w
}

// send is do for answers that are compressed.
func (s *harness) send(r request) (answer, *http.Request) {
	if r.method == "" {
		r.method = http.MethodGet
	}
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	req := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body))
	req.Host = cmp.Or(r.host, "localhost:8443")
	if r.body != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if !r.anonymous {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	s.http.ServeHTTP(w, req)
	return answer{w}, req
}

const n3 = `{"pool": "compute", "name": "n3", "macs": ["52-54-00-00-00-03"], "ip": "10.28.0.13", "tags": ["debug"]}`

// with returns n3 with one more field.
func with(field string) string { return strings.Replace(n3, "{", "{"+field+", ", 1) }

func TestAPI(t *testing.T) {
	const nodes = "/api/v1/nodes"
	patch := func(body string) []request {
		return []request{{method: "POST", path: nodes, body: n3}, {method: "PATCH", path: nodes + "/n3", body: body, contentType: "application/merge-patch+json"}}
	}
	tests := []struct {
		name  string
		reqs  []request // the answer to the last one is checked
		code  int
		want  string // part of the answer
		where string
	}{
		{"add", []request{{method: "POST", path: nodes, body: n3}}, 201, `"source":{"path":"API (node \"n3\")"}`, ""},
		{"add with nulls", []request{{method: "POST", path: nodes, body: strings.Replace(n3, `["debug"]`, "null", 1)}}, 201, `"name":"n3"`, ""},
		{"add with charset", []request{{method: "POST", path: nodes, body: n3, contentType: "application/json; charset=utf-8"}}, 201, `"ip":"10.28.0.13"`, ""},
		{"add twice", []request{{method: "POST", path: nodes, body: n3}, {method: "POST", path: nodes, body: n3}}, 409, `a node of that name exists: "n3"`, ""},
		{"add a declared one", []request{{method: "POST", path: nodes, body: strings.Replace(n3, "n3", "m2", 1)}}, 409, `node "m2" is declared in drover.yaml:8`, "drover.yaml:8"},
		{"add with the MAC of a declared one", []request{{method: "POST", path: nodes, body: strings.Replace(n3, "00-03", "00-01", 1)}}, 400, "52:54:00:00:00:01", ""},
		{"add with the address of a declared one", []request{{method: "POST", path: nodes, body: strings.Replace(n3, "0.13", "0.12", 1)}}, 400, "10.28.0.12", ""},
		{"add to an unknown pool", []request{{method: "POST", path: nodes, body: strings.Replace(n3, "compute", "comptue", 1)}}, 400, `unknown pool \"comptue\"`, ""},
		{"add with several mistakes: pool", []request{{method: "POST", path: nodes, body: `{"pool": "x", "name": "UPPER", "macs": [], "tags": ["nope"]}`}}, 400, `unknown pool \"x\"`, ""},
		{"add with several mistakes: tag", []request{{method: "POST", path: nodes, body: `{"pool": "x", "name": "UPPER", "macs": [], "tags": ["nope"]}`}}, 400, `unknown tag \"nope\"`, ""},
		{"add without a type", []request{{method: "POST", path: nodes, body: n3, contentType: "text/plain"}}, 415, `Content-Type \"text/plain\": want application/json`, ""},
		{"add a patch", []request{{method: "POST", path: nodes, body: n3, contentType: "application/merge-patch+json"}}, 415, "want application/json", ""},
		{"add too much", []request{{method: "POST", path: nodes, body: `{"name": "` + strings.Repeat("a", 1<<20) + `"}`}}, 413, "more than 1048576 bytes", ""},
		{"add nothing", []request{{method: "POST", path: nodes, body: " "}}, 400, "the body is not JSON: unexpected end of JSON input", ""},
		{"add half", []request{{method: "POST", path: nodes, body: `{"name": "n3"`}}, 400, "unexpected end of JSON input at byte 13", ""},
		{"add garbage", []request{{method: "POST", path: nodes, body: `{name: n3}`}}, 400, "the body is not JSON", ""},
		{"add two", []request{{method: "POST", path: nodes, body: n3 + n3}}, 400, "after top-level value", ""},
		{"add a list", []request{{method: "POST", path: nodes, body: "[" + n3 + "]"}}, 400, "the body is not an object, but a list", ""},
		{"add an unknown field", []request{{method: "POST", path: nodes, body: strings.Replace(n3, "tags", "Tags", 1)}}, 400, `unknown key \"Tags\" (did you mean \"tags\"?)`, ""},
		{"add a field twice", []request{{method: "POST", path: nodes, body: strings.Replace(n3, `{`, `{"name": "n4", `, 1)}}, 400, `duplicate key \"name\"`, ""},
		{"add what is no MAC", []request{{method: "POST", path: nodes, body: strings.Replace(n3, "52-", "zz-", 1)}}, 400, `is not a MAC address`, ""},
		{"every mistake at once", []request{{method: "POST", path: nodes, body: `{"name": 3, "ip": "x", "tagz": []}`}}, 400,
			`name: want a string, not 3 (write \"3\")\nip: \"x\" is not an IP address (write 10.28.0.2)\nunknown key \"tagz\" (did you mean \"tags\"?)`, ""},
		{"add a null MAC", []request{{method: "POST", path: nodes, body: strings.Replace(n3, `"52-54-00-00-00-03"`, "null", 1)}}, 400, `macs[0]: has no value`, ""},
		{"add one MAC alone", []request{{method: "POST", path: nodes, body: strings.Replace(n3, `["52-54-00-00-00-03"]`, `"52-54-00-00-00-03"`, 1)}}, 400, `macs: want a list, not a plain value`, ""},
		{"add what is no address", []request{{method: "POST", path: nodes, body: strings.Replace(n3, "10.28.0.13", "10.28.0.256", 1)}}, 400, `ip: \"10.28.0.256\" is not an IP address (write 10.28.0.2)`, ""},
		{"add a number for a name", []request{{method: "POST", path: nodes, body: strings.Replace(n3, `"n3"`, "3", 1)}}, 400, `name: want a string, not 3 (write \"3\")`, ""},
		{"add what is not UTF-8", []request{{method: "POST", path: nodes, body: strings.Replace(n3, "n3", "n\xff", 1)}}, 400, "not UTF-8", ""},
		{"add what is nested deep", []request{{method: "POST", path: nodes, body: strings.Repeat("[", 100000)}}, 400, "exceeded max depth", ""},

		{"add with a match", []request{{method: "POST", path: nodes, body: with(`"match": {"circuitID": "hex:0a0b", "remoteID": "sw1", "class": null}`)}}, 201, `"match":{"circuitID":"hex:0a0b","remoteID":"sw1"}`, ""},
		{"add with an unknown match", []request{{method: "POST", path: nodes, body: with(`"match": {"port": "7"}`)}}, 400, `unknown key \"match.port\" (known: arch, circuitID, class`, ""},
		{"add with a match that is none", []request{{method: "POST", path: nodes, body: with(`"match": "eth7"`)}}, 400, `match: want keys with values`, ""},
		{"add with a firmware that is none", []request{{method: "POST", path: nodes, body: with(`"match": {"firmware": "vax"}`)}}, 400, `match names a kind of machine`, ""},
		{"add with an architecture that is none", []request{{method: "POST", path: nodes, body: with(`"match": {"arch": 70000}`)}}, 400, `match.arch: \"70000\" is not an architecture type`, ""},
		{"add with options", []request{{method: "POST", path: nodes, body: with(`"dhcpOptions": {"ntp-server": ["10.28.0.1", "10.28.0.3"], "100": "CET", "42": null}`)}}, 201, `"dhcpOptions":{"100":["CET"],"ntp-server":["10.28.0.1","10.28.0.3"]}`, ""},
		{"add with options that are none", []request{{method: "POST", path: nodes, body: with(`"dhcpOptions": ["42"]`)}}, 400, `dhcpOptions: want keys with values`, ""},
		{"add with the number of an option", []request{{method: "POST", path: nodes, body: with(`"dhcpOptions": {"mtu": 9000}`)}}, 400, `dhcpOptions.mtu: want a string, not 9000`, ""},
		{"add to be ignored", []request{{method: "POST", path: nodes, body: with(`"ignore": true`)}}, 201, `"ignore":true`, ""},
		{"add with ignore as text", []request{{method: "POST", path: nodes, body: with(`"ignore": "yes"`)}}, 400, `ignore: \"yes\" is neither true nor false`, ""},

		{"list", []request{{method: "POST", path: nodes, body: n3}, {path: nodes}}, 200, `"name":"m1"`, ""},
		{"list shows lines", []request{{path: nodes}}, 200, `"source":{"file":"drover.yaml","line":8,`, ""},
		{"head", []request{{method: "HEAD", path: nodes}}, 200, "", ""},
		{"get a declared one", []request{{path: nodes + "/m2"}}, 200, `"macs":["52:54:00:00:00:02","52:54:00:00:01:02"]`, ""},
		{"get what is not there", []request{{path: nodes + "/n3"}}, 404, `no such node: "n3"`, ""},

		{"patch tags", patch(`{"tags": ["gpu"]}`), 200, `"tags":["gpu"]`, ""},
		{"patch: null removes", patch(`{"tags": null}`), 200, `"ip":"10.28.0.13","source"`, ""},
		{"patch nothing", patch(`{}`), 200, `"tags":["debug"]`, ""},
		{"patch the pool", patch(`{"pool": "storage"}`), 200, `"pool":"storage"`, ""},
		{"patch the name", patch(`{"name": "n4"}`), 400, `cannot be renamed`, ""},
		{"patch: no name", patch(`{"name": null}`), 400, `cannot be renamed`, ""},
		{"patch: no MACs", patch(`{"macs": []}`), 400, `n3`, ""},
		{"patch to what another has", patch(`{"macs": ["52:54:00:00:01:02"]}`), 400, "52:54:00:00:01:02", ""},
		{"patch an unknown field", patch(`{"role": "x"}`), 400, `unknown key \"role\"`, ""},
		{"patch: null of an unknown field", patch(`{"role": null}`), 200, `"name":"n3"`, ""},
		{"patch with a list", patch(`[]`), 400, "the body is not an object", ""},
		{"patch with null", patch(`null`), 400, "the body is not an object", ""},
		{"patch a declared one", []request{{method: "PATCH", path: nodes + "/m1", body: `{"tags": ["gpu"]}`}}, 409, "change it there", "drover.yaml:7"},
		{"patch what is not there", []request{{method: "PATCH", path: nodes + "/n3", body: `{}`}}, 404, "no such node", ""},

		{"remove", []request{{method: "POST", path: nodes, body: n3}, {method: "DELETE", path: nodes + "/n3"}}, 204, "", ""},
		{"removed", []request{{method: "POST", path: nodes, body: n3}, {method: "DELETE", path: nodes + "/n3"}, {path: nodes + "/n3"}}, 404, "no such node", ""},
		{"remove a declared one", []request{{method: "DELETE", path: nodes + "/m1"}}, 409, "declared", "drover.yaml:7"},
		{"remove what is not there", []request{{method: "DELETE", path: nodes + "/n3"}}, 404, "no such node", ""},

		{"no such path", []request{{path: "/api/v1/nodse"}}, 404, `no such path`, ""},
		{"no such method", []request{{method: "PUT", path: nodes, body: n3}}, 405, "/api/v1/nodes accepts GET or POST, not PUT", ""},
		{"boots", []request{{path: "/api/v1/boots"}}, 200, `[]`, ""},
		{"boots, bad limit", []request{{path: "/api/v1/boots?limit=0"}}, 400, `limit \"0\"`, ""},
		{"boots, bad parameter", []request{{path: "/api/v1/boots?nodes=x"}}, 400, `unknown parameter \"nodes\"`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newHarness(t)
			var resp answer
			for _, r := range tt.reqs {
				resp = s.do(r)
			}
			got := compact(resp.Body.String())
			if resp.Code != tt.code || !strings.Contains(got, tt.want) && !strings.Contains(unescaped(got), tt.want) {
				t.Errorf("got %d %s\nwant %d with %s", resp.Code, got, tt.code, tt.want)
			}
			if tt.code < 400 {
				return
			}
			var e struct{ Error, Where string }
			if err := json.Unmarshal([]byte(got), &e); err != nil || e.Error == "" || e.Where != tt.where {
				t.Errorf("got error %q where %q, want one where %q", e.Error, e.Where, tt.where)
			}
		})
	}
}

func compact(s string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}

func unescaped(s string) string { return strings.ReplaceAll(s, `\"`, `"`) }

// TestChangesAreLive: an added node is in force at once. A refused change changes
// nothing.
func TestChangesAreLive(t *testing.T) {
	s := newHarness(t)
	mac := pools.MAC{0x52, 0x54, 0, 0, 0, 3}
	resolve := func() string {
		if p := s.live.Farm().Resolve(resolve.Query{MAC: mac}); p != nil && !p.CatchAll {
			return p.Node
		}
		return ""
	}
	if resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: n3}); resp.Header().Get("Location") != "/api/v1/nodes/n3" {
		t.Errorf("got Location %q", resp.Header().Get("Location"))
	}
	if got := resolve(); got != "n3" {
		t.Errorf("after POST the MAC is %q", got)
	}
	s.do(request{method: "PATCH", path: "/api/v1/nodes/n3", body: `{"ip": "10.99.0.1"}`})
	if n, _ := s.live.Farm().Node("n3"); n.IP != netip.MustParseAddr("10.28.0.13") {
		t.Errorf("a refused PATCH changed the address to %s", n.IP)
	}
	s.do(request{method: "DELETE", path: "/api/v1/nodes/n3"})
	if got := resolve(); got != "" {
		t.Errorf("after DELETE the MAC is %q", got)
	}
}

// TestStoreFails: a change that cannot be stored is a 500, and is logged.
func TestStoreFails(t *testing.T) {
	s := newHarness(t)
	s.store.err = errors.New("disk full")
	resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: n3})
	if resp.Code != 500 || !strings.Contains(s.log.String(), "disk full") {
		t.Errorf("got %d, log %q", resp.Code, s.log)
	}
	if _, ok := s.live.Farm().Node("n3"); ok {
		t.Error("the node is in force and not stored")
	}
}

func TestListBoots(t *testing.T) {
	var all bootList
	for i, name := range []string{"c", "a", "b", "a", "a"} {
		all = append(all, boots.Record{ID: string(rune('z' - i)), MAC: pools.MAC{2}, Node: name, Steps: []boots.StepTime{{Step: boots.StepDiscover}}})
	}
	s := newHarness(t, func(s *harness) { s.Boots = all })
	for query, want := range map[string]string{
		"":                 "zyxwv",
		"?node=a":          "ywv",
		"?node=a&limit=2":  "yw",
		"?limit=1":         "z",
		"?node=nobody":     "",
		"?limit=1000":      "zyxwv",
		"?node=&limit=999": "zyxwv",
	} {
		var got []boots.Record
		if err := json.Unmarshal(s.do(request{path: "/api/v1/boots" + query}).Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		ids := ""
		for _, b := range got {
			ids += b.ID
		}
		if ids != want || got == nil {
			t.Errorf("%q: got %q, want %q", query, ids, want)
		}
	}
}

// TestMovesAndStuckBoots: the API and the page show moves and stuck boots.
func TestMovesAndStuckBoots(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		s.Boots = bootList{boot(1, "m1", "tenant-a", 6, 10*time.Minute, "")}
		s.Moves = func() []pools.Move {
			return []pools.Move{{Node: "m2", From: "tenant-b", To: "tenant-a", As: "m2", Step: pools.MoveDrains, Detail: "<b>2</b> pods left", Since: epoch}}
		}
	})
	var nodes []struct {
		Name string
		Move *pools.Move
	}
	if err := json.Unmarshal(s.do(request{path: "/api/v1/nodes"}).Body.Bytes(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if (n.Move != nil) != (n.Name == "m2") {
			t.Errorf("%s: move %+v", n.Name, n.Move)
		}
	}
	one := s.do(request{path: "/api/v1/nodes/m2"}).Body.String()
	if !strings.Contains(one, `"from": "tenant-b"`) || !strings.Contains(one, `"step": "drains"`) || !strings.Contains(one, `"ip": "10.28.0.12"`) {
		t.Errorf("node: %s", one)
	}
	var all []boots.Record
	if err := json.Unmarshal(s.do(request{path: "/api/v1/boots"}).Body.Bytes(), &all); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if got := all[0].Stuck; got == nil || got.After != boots.Steps()[5].Step || got.Limit.D() != 3*time.Minute {
		t.Errorf("stuck: %+v", got)
	}
	page := s.browse(t, "/nodes")
	for _, want := range []string{"moving from tenant-b to tenant-a: drains, &lt;b&gt;2&lt;/b&gt; pods left", `<tr id="row-m1" class="stuck"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
