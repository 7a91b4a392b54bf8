package web_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
)

// timeline is the boot of a node that reached these steps, one a minute.
func timeline(node string, mac byte, unknown bool, began time.Time, steps ...boots.Step) boots.Record {
	r := boots.Record{
		ID: began.Format("20060102T150405.000000"), Node: node, MAC: pools.MAC{0x52, 0x54, 0, 0, 0, mac}, Pool: "compute", Cluster: "tenant-a",
		Image: "debian-12", Unknown: unknown, Started: began,
	}
	for i, s := range steps {
		r.Steps = append(r.Steps, boots.StepTime{Step: s, Time: began.Add(time.Duration(i) * time.Minute)})
	}
	return r
}

// TestNodeStatus: each node says how its machine is, and those of catch-all pools are there
// when they are asked for.
func TestNodeStatus(t *testing.T) {
	m := &machines{jobs: []pools.PowerJob{
		{Nodes: []pools.PowerNode{{Name: "m1", State: "unknown"}}},
		{Nodes: []pools.PowerNode{{Name: "m1", State: "on", Time: epoch}}},
		{Nodes: []pools.PowerNode{{Name: "m1", State: "off"}}},
	}}
	s := newHarness(t, func(s *harness) {
		s.Power, s.Leases = m, someLeases()
		s.Boots = bootList{
			timeline("node-52540000000a", 10, true, epoch.Add(-time.Second), boots.StepDiscover),
			timeline("m2", 2, false, epoch.Add(-time.Hour), boots.StepDiscover, boots.StepOffer),
			timeline("m1", 1, false, epoch.Add(-2*time.Hour), boots.StepDiscover, boots.StepReady),
			timeline("m1", 1, false, epoch.Add(-3*time.Hour), boots.StepDiscover),
		}
	})
	s.do(request{method: "POST", path: "/api/v1/nodes", body: n3})
	list := func(query string) string {
		t.Helper()
		var nodes []pools.NodeInfo
		body := s.do(request{path: "/api/v1/nodes" + query}).Body.Bytes()
		if err := json.Unmarshal(body, &nodes); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		var words []string
		for _, n := range nodes {
			st := n.Status
			words = append(words, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s", n.Name, st.State, st.Address, st.Cluster, st.Power, st.Detail)))
		}
		return strings.Join(words, "\n")
	}
	declared := "m1 ready 10.28.0.11 tenant-a on\nm2 stuck 10.28.0.12 tenant-a  after offer\nn3 new 10.28.0.13"
	if got := list(""); got != declared {
		t.Errorf("got\n%s\nwant\n%s", got, declared)
	}
	if got, want := list("?catchall=true"), declared+"\nnode-52540000000a booting 10.28.72.10 tenant-a  discover"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if resp := s.do(request{path: "/api/v1/nodes?catchall=1"}); resp.Code != 400 {
		t.Errorf("catchall=1: got %d", resp.Code)
	}
	for path, want := range map[string]string{
		"/api/v1/boots?stuck=true": `"node":"m2"`, "/api/v1/boots?pool=storage": "[]", "/api/v1/boots?since=2026-11-20T11:30:00Z": `"node":"node-52540000000a"`,
		"/api/v1/boots?before=~&limit=1": `"node":"node-52540000000a"`, "/api/v1/boots?node=m1&before=20261120T100000.000000": `"started":"2026-11-20T09:00:00Z"`,
	} {
		if got := compact(s.do(request{path: path}).Body.String()); !strings.Contains(got, want) || strings.Count(got, `"id"`) != strings.Count(want, `":"`) {
			t.Errorf("%s: got %s, want one boot with %s", path, got, want)
		}
	}
	for _, path := range []string{"/api/v1/boots?stuck=x", "/api/v1/boots?since=yesterday"} {
		if resp := s.do(request{path: path}); resp.Code != 400 {
			t.Errorf("%s: got %d", path, resp.Code)
		}
	}
	if resp := s.do(request{method: "DELETE", path: "/api/v1/boots/m9"}); resp.Code != 404 {
		t.Errorf("boots of nobody: got %d", resp.Code)
	}
	if resp := s.do(request{method: "DELETE", path: "/api/v1/boots/m2"}); resp.Code != 204 || !strings.Contains(fmt.Sprint(m.audit, s.log), "forget boots") {
		t.Errorf("forget: got %d", resp.Code)
	}
}

// TestAddresses: free addresses are those that no node, range, server or lease has.
func TestAddresses(t *testing.T) {
	used := lease(1, time.Hour)
	used.Address = netip.MustParseAddr("10.28.0.4")
	s := newHarness(t, func(s *harness) { s.Leases = &leases{used} })
	for _, tt := range []struct {
		query string
		code  int
		want  string
	}{
		{"?limit=4", 200, `["10.28.0.3","10.28.0.5","10.28.0.6","10.28.0.7"]`},
		{"?link=10.28.99.1", 200, `["10.28.0.3"]`},
		{"?link=10.99.0.1", 400, "no subnet has it"},
		{"?link=here", 400, "want an IP address"},
		{"?limit=0", 400, "limit"},
		{"?limit=1001", 400, "limit"},
	} {
		resp := s.do(request{path: "/api/v1/addresses" + tt.query})
		if got := compact(resp.Body.String()); resp.Code != tt.code || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %d %s, want %d %s", tt.query, resp.Code, got, tt.code, tt.want)
		}
	}
}

// configFile is a config file in memory.
type configFile struct{ err error }

func (configFile) InForce() pools.ConfigInForce {
	return pools.ConfigInForce{File: "drover.yaml", Content: "secret: hunter2"}
}

func (c configFile) Reload(string) (pools.ReloadResult, error) {
	return pools.ReloadResult{Nodes: 2}, c.err
}

func (configFile) List() []pools.ConfigEntry { return nil }

func (configFile) Get(int) (pools.ConfigVersion, error) {
	return pools.ConfigVersion{}, pools.ErrNoConfig
}

func (configFile) Rollback(int, string, bool) (pools.ReloadResult, error) {
	return pools.ReloadResult{}, pools.ErrNoConfig
}

func (c configFile) Answer(pools.ConfigAnswer, string) (pools.ReloadResult, error) {
	return pools.ReloadResult{Nodes: 2}, c.err
}

func (configFile) Check(content []byte) error {
	_, err := config.Parse("drover.yaml", content)
	return err
}

// TestConfigInForce: the config is for the token alone, because it may have secrets.
func TestConfigInForce(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.ConfigFile = configFile{} })
	for _, header := range []map[string]string{nil, s.session(t)} {
		resp := s.do(request{path: "/api/v1/config", anonymous: true, header: header})
		if resp.Code != 401 || strings.Contains(resp.Body.String(), "hunter2") {
			t.Errorf("without the token: got %d %s", resp.Code, resp.Body)
		}
	}
	if resp := s.do(request{path: "/api/v1/config"}); resp.Code != 200 || !strings.Contains(resp.Body.String(), "hunter2") {
		t.Errorf("got %d %s", resp.Code, resp.Body)
	}
	for _, tt := range []struct {
		request
		code int
	}{
		{request{method: "POST", path: "/api/v1/config:reload"}, 200},
		{request{method: "POST", path: "/api/v1/config:check", body: `{"content": "pools: []"}`, anonymous: true, header: s.session(t)}, 401},
		{request{method: "POST", path: "/api/v1/config:check", body: `{"text": "pools: []"}`}, 400},
		{request{method: "POST", path: "/api/v1/config:reload?dryRun=true"}, 400},
		{request{method: "POST", path: "/api/v1/config:reload", anonymous: true, header: s.session(t)}, 401},
		{request{path: "/api/v1/config:reload"}, 405},
	} {
		if resp := s.do(tt.request); resp.Code != tt.code {
			t.Errorf("%s %s: got %d, want %d", tt.method, tt.path, resp.Code, tt.code)
		}
	}
}
