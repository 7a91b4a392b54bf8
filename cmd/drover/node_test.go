package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/farmtest"
	"drover/hardware"
	"drover/kube"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/resolve"
	"drover/state"
	"drover/web"
	"drover/web/api"
	"drover/web/auth"
)

const apiConfig = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1}]
clusters: [{name: tenant-a, kubeconfig: a.kubeconfig}]
tags: {debug: {kernelArgs: debug}}
pools:
  - {name: compute, cluster: tenant-a, image: debian-12, nodes: [{name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11}]}
`

// apiSite serves the REST API with a real farm and a real state file, and sets the
// environment of commands to it.
func apiSite(t *testing.T) (*state.Store, *httptest.Server) { return apiSiteOf(t, apiConfig) }

func apiSiteOf(t *testing.T, config string) (*state.Store, *httptest.Server) {
	t.Helper()
	store, live := farmtest.Open(t, config)
	return store, serveSite(t, &web.Server{API: apiOf(store, live, hardware.New())})
}

// apiOf returns the REST API of a server without clusters and images.
func apiOf(store *state.Store, live *config.Live, h *hardware.Service) *api.API {
	return &api.API{
		Farm: live, Nodes: live, Boots: store.Boots, Leases: store.Leases, Unknowns: store.Unknowns,
		NextBoots: store.NextBoots, FallBacks: fallBacks{store.FallBacks}, Hardware: h, Power: h, Audit: store.Audit, Tokens: &kube.Clusters{},
		Ready:      func(context.Context) []api.Problem { return nil },
		CheckImage: func(string) error { return nil },
		Moves:      func() []pools.Move { return nil },
		Log:        slog.New(slog.DiscardHandler), Now: time.Now,
	}
}

// serveSite serves the API, and sets the environment of commands to it.
func serveSite(t testing.TB, s *web.Server) *httptest.Server {
	t.Helper()
	file, err := filepath.Abs("state/api.token")
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := auth.LoadToken(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Token = token
	if s.Named, err = auth.OpenTokens("state/api-tokens.json", time.Now); err != nil {
		t.Fatal(err)
	}
	s.API.APITokens = s.Named
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	t.Setenv("DROVER_API", srv.URL)
	t.Setenv("DROVER_TOKEN_FILE", file)
	return srv
}

// command is a command line and its expected result.
type command struct {
	args string
	code int
	out  string // all of stdout
	err  string // part of stderr
}

func (c command) run(t *testing.T) {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
	if code != c.code || stdout.String() != c.out || !strings.Contains(stderr.String(), c.err) || c.err == "" && stderr.String() != "" {
		t.Errorf("drover %s: exit %d\n%s%s\nwant exit %d\n%s%s", c.args, code, &stdout, &stderr, c.code, c.out, c.err)
	}
}

func TestNodeCommands(t *testing.T) {
	apiSite(t)
	for _, c := range []command{
		{"node list", 0, `NAME  POOL     IP          STATE  FOR  TAGS  FROM           NOTE
m1    compute  10.28.0.11  new    -    -     drover.yaml:6  -
`, ""},
		{"node add n2 --pool compute --mac 52-54-00-00-00-02 --mac 525400000102 --ip 10.28.0.12 --tag debug", 0, "added n2 to pool compute\n", ""},
		{"node add n3 --pool compute --mac 52:54:00:00:00:03 --ip 10.28.0.13", 0, "added n3 to pool compute\n", ""},
		{"node add n2 --pool compute --mac 52:54:00:00:00:09 --ip 10.28.0.19", 1, "", `a node of that name exists: "n2"`},
		{"node add m1 --pool compute --mac 52:54:00:00:00:09 --ip 10.28.0.19", 1, "", "declared in drover.yaml:6"},
		{"node add n9 --pool compute --mac 52:54:00:00:00:01 --ip 10.28.0.19", 1, "", "52:54:00:00:00:01"},
		{"node list", 0, `NAME  POOL     IP          STATE  FOR  TAGS   FROM           NOTE
m1    compute  10.28.0.11  new    -    -      drover.yaml:6  -
n2    compute  10.28.0.12  new    -    debug  API            -
n3    compute  10.28.0.13  new    -    -      API            -
`, ""},
		{"node show n3", 0, "name   n3\npool   compute\nip     10.28.0.13\nmacs   52:54:00:00:00:03\ntags   -\nfrom   API\nstate  new\n", ""},
		{"node show n3 -o json", 0, `{
  "pool": "compute",
  "name": "n3",
  "macs": [
    "52:54:00:00:00:03"
  ],
  "ip": "10.28.0.13",
  "source": {
    "path": "API (node \"n3\")"
  },
  "status": {
    "state": "new",
    "address": "10.28.0.13"
  }
}
`, ""},
		{"node show m1 -o yaml", 0, `pool: compute
name: m1
macs:
  - "52:54:00:00:00:01"
ip: 10.28.0.11
source:
  file: drover.yaml
  line: 6
  path: pools[0].nodes[0]
status:
  state: new
  address: 10.28.0.11
`, ""},
		{"node add n4 --pool compute --mac 52:54:00:00:00:04", 1, "", `node "n4" has no ip`},
		{"node add n5 --pool compute --circuit-id ge-7 --remote-id sw1 --ip 10.28.0.15", 0, "added n5 to pool compute\n", ""},
		{"node add n6 --pool compute --circuit-id ge-7 --remote-id sw1 --ip 10.28.0.16", 1, "", `n5`},
		{"node rm n5", 0, "- n5 (pool compute, 10.28.0.15, -)\nremoved n5\n", ""},
		{"node show n4", 1, "", `no such node: "n4"`},
		{"node rm n2 m1 n4 -y", 1, "", "no such node: n4"},
		{"node rm n2 m1 -y", 1, "", "change it there"},
		{"node rm m1", 1, "", "change it there"},
		{"node rm n2 n3 -y", 0, "- n2 (pool compute, 10.28.0.12, 52:54:00:00:00:02,52:54:00:00:01:02)\n- n3 (pool compute, 10.28.0.13, 52:54:00:00:00:03)\nremoved n2\nremoved n3\n", ""},
		{"node rm ../boots", 1, "", "no such node: ../boots"},
		{"node list -o json --limit 3", 2, "", "unknown flag"},
	} {
		c.run(t)
	}
}

// The commands show a node that is identified by its switch port.
func TestNodeByPort(t *testing.T) {
	apiSiteOf(t, strings.Replace(apiConfig, `ip: 10.28.0.11}`, `ip: 10.28.0.11},
    {name: p1, match: {circuitID: eth7}, ip: 10.28.0.19, dhcpOptions: {ntp-server: [10.28.0.1, 10.28.0.3]}}, {name: p2, macs: ["52:54:00:00:00:02"], ignore: true}`, 1))
	for _, c := range []command{
		{"node list", 0, `NAME  POOL     IP          STATE    FOR  TAGS  FROM           NOTE
m1    compute  10.28.0.11  new      -    -     drover.yaml:6  -
p1    compute  10.28.0.19  new      -    -     drover.yaml:7  -
p2    compute  -           ignored  -    -     drover.yaml:7  -
`, ""},
		{"node show p1", 0, `name               p1
pool               compute
ip                 10.28.0.19
macs               -
match circuitID    eth7
tags               -
option ntp-server  10.28.0.1, 10.28.0.3
from               drover.yaml:7
state              new
`, ""},
		{"node show p2", 0, "name    p2\npool    compute\nip      -\nmacs    52:54:00:00:00:02\ntags    -\nignore  it gets silence\nfrom    drover.yaml:7\nstate   ignored\n", ""},
	} {
		c.run(t)
	}
}

func TestBootCommands(t *testing.T) {
	store, _ := apiSite(t)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	store.Boots.Now = func() time.Time { return now }
	p := &resolve.Plan{MAC: pools.MAC{0x52, 0x54, 0, 0, 0, 1}, Node: "m1", Pool: "compute", Cluster: "tenant-a", Image: "debian-12", Generation: strings.Repeat("0123456789abcdef", 4)}
	store.Boots.Discover(p, now)
	for _, e := range []boots.Event{
		{Step: boots.StepLoader, Detail: "snponly.efi"}, {Step: boots.StepScript}, {Step: boots.StepReady},
		{Step: boots.StepJoined}, {Step: boots.StepJoined, Error: "exit status 1"},
	} {
		now = now.Add(40250 * time.Millisecond)
		if err := store.Boots.Step(p.MAC, "", e); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []command{
		{"boot list", 0, `STARTED              NODE  MAC                CLUSTER   IMAGE                   STEP   AFTER    ERROR
2026-11-20 12:00:00  m1    52:54:00:00:00:01  tenant-a  debian-12@0123456789ab  ready  120.8 s  exit status 1
`, ""},
		{"boot list --node m2", 1, "", "no such node: m2"},
		{"boot list --pool compute --since 1h", 0, "STARTED  NODE  MAC  CLUSTER  IMAGE  STEP  AFTER  ERROR\n", ""},
		{"boot list --since 1h -o json", 0, "[]\n", ""},
		{"boot list --since 1h --limit 0", 0, "STARTED  NODE  MAC  CLUSTER  IMAGE  STEP  AFTER  ERROR\n", ""},
		{"boot list --limit -1", 2, "", "must not be negative"},
		{"boot show m1", 0, `m1 (52:54:00:00:00:01), image debian-12@0123456789ab, cluster tenant-a, started 2026-11-20 12:00:00 UTC

    0.0 s         discover
   40.2 s  +40.2  loader      snponly.efi
   80.5 s  +40.2  script
  120.8 s  +40.2  ready
  161.0 s  +40.2  joined
  201.2 s         joined      error: exit status 1

last error: exit status 1
`, ""},
		{"boot show m2", 1, "", `no boot of node "m2" is known`},
		{"boot", 0, help(t, "boot"), ""},
	} {
		c.run(t)
	}
}

func help(t *testing.T, name string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"help", name}, &stdout, &stderr); code != 0 || stdout.Len() == 0 {
		t.Fatalf("help %s: exit %d: %s", name, code, &stderr)
	}
	return stdout.String()
}

// Usage is checked before the server is called.
func TestBootUsage(t *testing.T) {
	apiSite(t)
	for _, c := range []command{
		{"boot frobnicate", 2, "", `unknown command "frobnicate" for "drover boot"`},
		{"boot show m1 -o table", 2, "", `unknown output "table" (text, json or yaml)`},
	} {
		c.run(t)
	}
}

func TestNoAnswer(t *testing.T) {
	_, srv := apiSite(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/nodes/redirect":
			http.Redirect(w, r, srv.URL+"/api/v1/nodes", http.StatusFound)
		case "/api/v1/nodes/page":
			_, _ = w.Write([]byte("<html>"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(elsewhere.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"wrong.token": strings.Repeat("0", 64), "empty.token": "\n", "two.token": "one\ntwo"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []command{
		{"node list --api " + closed, 4, "", closed + " does not answer: dial tcp"},
		{"node list --api " + closed, 4, "", "is drover serve running there?"},
		{"node rm a b -y --api " + closed, 4, "", "does not answer"},
		{"node list --token-file wrong.token", 5, "", "refused the token in wrong.token"},
		{"node rm a b -y --token-file wrong.token", 5, "", "refused the token"},
		{"node list --token-file none.token", 1, "", "drover serve makes it at its first start"},
		{"node list --token-file empty.token", 1, "", "empty.token does not hold a token"},
		{"node list --token-file two.token", 1, "", "two.token does not hold a token"},
		{"node show redirect --api " + elsewhere.URL, 1, "", "302 Found: is that the API of a drover?"},
		{"node show page --api " + elsewhere.URL, 1, "", "not of the API of a drover"},
		{"node show x --api " + elsewhere.URL, 1, "", "404 Not Found: is that the API of a drover?"},
	} {
		c.run(t)
	}
}

// fallBacks is the trials of a store.
type fallBacks struct{ *state.FallBacks }

func (fallBacks) Clear(...string) {}
