package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/resolve"
	"drover/web/answer"
	"drover/web/api"
	"drover/web/auth"
)

// farmText is the operator's file of the tests. The node m2 has a password.
const farmText = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1}]
clusters: [{name: tenant-a, kubeconfig: a.kubeconfig}]
tags: {debug: {kernelArgs: debug}}
pools:
  - {name: compute, cluster: tenant-a, image: debian-12, delegates: [debug], nodes: [
      {name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11},
      {name: m2, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12, power: {driver: ipmi, address: 10.28.0.99, passwordFile: p, options: [-P, hunter2]}}]}
  - {name: storage, image: debian-12, delegates: [debug]}
`

var (
	epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	token = strings.Repeat("0123456789abcdef", 4)
	sum   = strings.Repeat("0a", 32) // of the backup that lies ready
	mac   = pools.MAC{0x52, 0x54, 0, 0, 0, 0x77}
	addr  = netip.MustParseAddr("10.28.72.10")
)

// world is all that the API asks and changes, in memory. It keeps the calls that change something.
type world struct {
	mu      sync.Mutex
	calls   []string
	nodes   map[string]pools.PoolNode
	entries []pools.AuditEntry
	next    map[string]pools.NextBoot

	boots    []boots.Record
	changing error // of the next change of nodes, after it was compared
}

func (w *world) called(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
}

// store is the nodes of the API.
type store struct{ *world }

func (s store) Nodes() ([]pools.PoolNode, error) { return slices.Collect(maps.Values(s.nodes)), nil }

func (s store) ChangeNodes(put []pools.PoolNode, remove []string) error {
	s.called("store %d, remove %q", len(put), remove)
	for _, n := range put {
		s.nodes[n.Name] = n
	}
	for _, name := range remove {
		delete(s.nodes, name)
	}
	return nil
}

// retired is a node that the config has lost: of the pool storage.
type retired struct{ *world }

func (retired) Retired() []pools.RetiredNode {
	n := pools.PoolNode{Pool: "storage", Node: pools.Node{Name: "gone", MACs: []pools.MAC{{0x52, 0x54, 0, 0, 0, 0x98}}, IP: netip.MustParseAddr("10.28.0.98")}}
	n.Power = &pools.NodePower{Driver: "ipmi", Options: []string{"-P", "hunter2"}}
	return []pools.RetiredNode{{PoolNode: n, From: "drover.yaml:9", Since: epoch}}
}

func (r retired) ChangeRetired(_ []pools.RetiredNode, remove []string) {
	for _, name := range remove {
		r.called("forget retired %s", name)
	}
}

// changer is a farm that changes between the look at a node and its change.
type changer struct {
	*config.Live
	*world
}

func (c changer) ChangeNodes(all []pools.NodeChange) error {
	if c.changing != nil {
		return c.changing
	}
	return c.Live.ChangeNodes(all)
}

type bootTable struct{ *world }

func (b bootTable) List() []boots.Record { return slices.Clone(b.boots) }

func (b bootTable) Forget(node string) int { b.called("forget boots of %s", node); return 1 }

type leases struct{ *world }

func (leases) List() []pools.Lease {
	return []pools.Lease{{Address: addr, MAC: mac, Pool: "compute", Expires: epoch.Add(time.Hour)}}
}

func (l leases) End(a netip.Addr, _ pools.MAC, _ time.Time) bool { l.called("end %s", a); return true }

type unknowns struct{ *world }

func (unknowns) List() []pools.Unknown { return []pools.Unknown{{MAC: mac, First: epoch, Last: epoch}} }

func (u unknowns) Forget(m pools.MAC) bool {
	if m == mac {
		u.called("forget %s", m)
	}
	return true
}

type nextBoots struct{ *world }

func (n nextBoots) Pending(node string) pools.NextBoot { return n.next[node] }

func (n nextBoots) Set(next pools.NextBoot, nodes ...string) error {
	n.called("next boot of %q: %q", nodes, next)
	for _, name := range nodes {
		n.next[name] = next
	}
	return nil
}

type channels struct{ *world }

func (channels) List() []pools.Channel {
	return []pools.Channel{{Image: "debian-12", Name: "stable", Current: sum, History: []pools.Promotion{{ID: sum, By: "the token of an admin"}}}}
}

func (c channels) Promote(r pools.PromoteRequest, _ string, dry bool) (pools.Channel, string, error) {
	if !dry {
		c.called("promote %s", r.Image)
	}
	return c.List()[0], "", nil
}

func (c channels) Rollback(r pools.RollbackRequest, _ string, dry bool) (pools.Channel, string, error) {
	if !dry {
		c.called("roll back %s", r.Image)
	}
	return c.List()[0], "", nil
}

func (c channels) Mark(r pools.MarkRequest, _ string, dry bool) error {
	if !dry {
		c.called("mark %s", r.Image)
	}
	return nil
}

type fallBacks struct{ *world }

func (fallBacks) Of(string) pools.ImageTrial { return pools.ImageTrial{} }

func (f fallBacks) Clear(nodes ...string) { f.called("clear fall-backs of %q", nodes) }

type hardware struct{ *world }

func (hardware) Chassis() []pools.ChassisStatus {
	return []pools.ChassisStatus{{Name: "hw", Pool: "compute"}}
}

func (h hardware) Sync(name string) error { h.called("read %s", name); return nil }

func (hardware) Places(nodes []pools.NodeInfo) []pools.ChassisSlot {
	return make([]pools.ChassisSlot, len(nodes))
}

func (h hardware) Switch(_ context.Context, _ string, req pools.PowerRequest) (pools.PowerJob, error) {
	h.called("switch %s", req.Action)
	return h.Preview(req)
}

func (hardware) Preview(req pools.PowerRequest) (job pools.PowerJob, err error) {
	if req.Action != "on" {
		return job, fmt.Errorf("%w: unknown action", pools.ErrPowerRequest)
	}
	job = pools.PowerJob{ID: "j1", Action: req.Action}
	for _, name := range req.Nodes {
		job.Nodes = append(job.Nodes, pools.PowerNode{Name: name})
	}
	return job, nil
}

func (hardware) Jobs() []pools.PowerJob { return []pools.PowerJob{{ID: "j1"}} }

func (hardware) Job(id string) (pools.PowerJob, bool) { return pools.PowerJob{ID: id}, id == "j1" }

type audit struct{ *world }

func (a audit) Add(entries ...pools.AuditEntry) error {
	a.entries = append(entries, a.entries...)
	return nil
}

func (a audit) List(limit int) ([]pools.AuditEntry, error) {
	return slices.Clone(a.entries[:min(limit, len(a.entries))]), nil
}

type tokenStore struct{ *world }

func (tokenStore) List() []pools.APIToken {
	return []pools.APIToken{{Name: "ci", Role: pools.RoleViewer}}
}

func (tokenStore) Check(r pools.APITokenRequest, _ string) (pools.APIToken, error) {
	return pools.APIToken{Name: r.Name, Role: r.Role}, nil
}

func (s tokenStore) Create(r pools.APITokenRequest, _ string) (pools.NewAPIToken, error) {
	s.called("make token %s", r.Name)
	return pools.NewAPIToken{APIToken: pools.APIToken{Name: r.Name, Role: r.Role}, Token: "hunter2"}, nil
}

func (s tokenStore) Rotate(name string) (pools.NewAPIToken, error) {
	s.called("rotate token %s", name)
	return pools.NewAPIToken{APIToken: pools.APIToken{Name: name, Role: pools.RoleViewer}, Token: "hunter2"}, nil
}

func (s tokenStore) Revoke(name string) error { s.called("revoke token %s", name); return nil }

type joinTokens struct{}

func (joinTokens) SharedToken(_ context.Context, cluster string) (pools.JoinToken, error) {
	return pools.JoinToken{Cluster: cluster, Token: "abcdef.0123456789abcdef"}, nil
}

type configFile struct{ *world }

func (configFile) InForce() pools.ConfigInForce { return pools.ConfigInForce{Content: farmText} }

func (c configFile) Reload(string) (pools.ReloadResult, error) {
	c.called("reload")
	return pools.ReloadResult{Nodes: 2}, nil
}

func (c configFile) Answer(a pools.ConfigAnswer, _ string) (pools.ReloadResult, error) {
	if a.SHA256 != sum {
		return pools.ReloadResult{}, pools.ErrNotHeld
	}
	c.called("answer, drop %v", a.Drop)
	return pools.ReloadResult{Nodes: 2}, nil
}

func (configFile) List() []pools.ConfigEntry {
	return []pools.ConfigEntry{{Number: 2, Time: epoch, Way: pools.ConfigByFile}, {Number: 1, Time: epoch, Way: pools.ConfigAtStart}}
}

func (configFile) Get(number int) (pools.ConfigVersion, error) {
	if number != 1 {
		return pools.ConfigVersion{}, pools.ErrNoConfig
	}
	return pools.ConfigVersion{ConfigEntry: pools.ConfigEntry{Number: 1}, Content: farmText}, nil
}

func (c configFile) Rollback(number int, _ string, try bool) (pools.ReloadResult, error) {
	_, err := c.Get(number)
	if err == nil && !try {
		c.called("rollback")
	}
	return pools.ReloadResult{Nodes: 2}, err
}

func (configFile) Check(content []byte) error {
	_, err := config.Parse("drover.yaml", content)
	return err
}

type restorer struct{ *world }

func (restorer) Check(sha256 string) error {
	if sha256 != sum {
		return pools.Hint("run drover restore --now again", "another backup lies ready")
	}
	return nil
}

func (r restorer) Restore(_, _ string) error { r.called("restore"); return nil }

type plans struct{ *config.Live }

func (p plans) Resolve(q resolve.Query) *resolve.Plan { return p.Farm().Resolve(q) }

func (p plans) WhyNot(q resolve.Query) string { return p.Farm().WhyNot(q) }

func (p plans) Named(node string) *resolve.Plan {
	n, ok := p.Farm().Node(node)
	if !ok {
		return nil
	}
	return p.Resolve(resolve.Query{MAC: n.MACs[0]})
}

// server is the API in a world, behind what authenticates its clients and bounds their bodies.
type server struct {
	*api.API
	*world
	log    fixture.Log
	named  *auth.Tokens
	http   http.Handler
	cookie *http.Cookie
}

func newServer(t *testing.T) *server {
	t.Helper()
	w := &world{nodes: map[string]pools.PoolNode{}, next: map[string]pools.NextBoot{}}
	dir := fixture.Tree(t, map[string]string{"drover.yaml": farmText})
	live, err := config.NewLive(config.Source{File: filepath.Join(dir, "drover.yaml")}, store{w})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return epoch }
	live.SetRetired(retired{w}, now)
	named, err := auth.OpenTokens(filepath.Join(dir, "tokens.json"), now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(named.Close)
	s := &server{world: w, named: named}
	s.API = &api.API{
		Farm: live, Nodes: changer{live, w}, Boots: bootTable{w}, Leases: leases{w}, Unknowns: unknowns{w}, NextBoots: nextBoots{w}, Channels: channels{w}, FallBacks: fallBacks{w},
		Hardware: hardware{w}, Power: hardware{w}, Audit: audit{w}, Tokens: joinTokens{}, APITokens: tokenStore{w}, Plans: plans{live},
		ConfigFile: configFile{w}, Configs: configFile{w}, Restorer: restorer{w},
		Ready: func(context.Context) []api.Problem { return nil }, Images: func() []pools.ImageInfo { return nil },
		CheckImage: func(string) error { return nil }, Moves: func() []pools.Move { return nil },
		Log: slog.New(slog.NewTextHandler(&s.log, nil)), Now: now,
	}
	guard := auth.New(auth.NewToken(token), named, false, now)
	s.http = http.MaxBytesHandler(guard.API(s.Handler()), answer.MaxBody)
	login := httptest.NewRecorder()
	if _, err := guard.Login(login, httptest.NewRequest("POST", "/login", nil), token); err != nil {
		t.Fatal(err)
	}
	s.cookie = login.Result().Cookies()[0]
	return s
}

// as returns the token of a client with a role, limited to pools if there are any.
func (s *server) as(t *testing.T, role pools.Role, of ...string) string {
	t.Helper()
	made, err := s.named.Create(pools.APITokenRequest{Name: fmt.Sprintf("t%d", len(s.named.List())), Role: role, Pools: of}, "the test")
	if err != nil {
		t.Fatal(err)
	}
	return made.Token
}

// request returns a request of the server's own token.
func request(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (s *server) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.http.ServeHTTP(w, r)
	return w
}

func (s *server) do(method, path, body string) *httptest.ResponseRecorder {
	return s.send(request(method, path, body))
}

// decode decodes a good answer.
func decode(t *testing.T, resp *httptest.ResponseRecorder, v any) {
	t.Helper()
	if err := json.Unmarshal(resp.Body.Bytes(), v); err != nil || resp.Code >= 300 {
		t.Fatalf("got %d %s: %v", resp.Code, resp.Body, err)
	}
}
