package web_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/resolve"
	"drover/web/api"
)

// plans makes plans as the farm says, without leases.
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

// The generations of an image.
var (
	newer      = strings.Repeat("a", 64)
	older      = strings.Repeat("b", 64)
	someImages = []pools.ImageInfo{
		{Name: "debian-12", ID: newer, Current: true, Created: epoch, Source: "dir:tree", Platform: "linux/amd64", KernelVersion: "6.1", Size: 300},
		{Name: "debian-12", ID: older, Created: epoch.Add(-time.Hour), Source: "dir:tree", Platform: "linux/amd64", KernelVersion: "6.0", Size: 200},
	}
)

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestStatus: one answer has the farm at a glance.
func TestStatus(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		s.Leases, s.Unknowns = someLeases(), someUnknowns()
		s.Boots = bootList{
			timeline("node-52540000000a", 10, true, epoch.Add(-time.Second), boots.StepDiscover),
			timeline("m2", 2, false, epoch.Add(-time.Hour), boots.StepDiscover, boots.StepOffer),
			timeline("m1", 1, false, epoch.Add(-2*time.Hour), boots.StepDiscover, boots.StepReady),
		}
		s.Ready = func(context.Context) []api.Problem {
			return []api.Problem{{Part: "cluster lobby", Problem: "does not answer", Warning: true}, {Part: "image debian-12", Problem: "missing"}}
		}
	})
	got := compact(s.do(request{path: "/api/v1/status"}).Body.String())
	want := `{"ready":false,"problems":[{"part":"cluster lobby","problem":"does not answer","warning":true},{"part":"image debian-12","problem":"missing"}],` +
		`"nodes":{"booting":1,"ready":1,"stuck":1},"pools":[{"name":"compute","nodes":3,"states":{"booting":1,"ready":1,"stuck":1}}],` +
		`"stuck":[{"cause":"after offer","nodes":["m2"]}],"images":{"debian-12":3},"outdated":0,"leases":{"active":1,"declined":1,"expired":1,"released":1},"unknown":2}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestImages: each generation names the pools that boot it.
func TestImages(t *testing.T) {
	s := newHarness(t)
	for query, want := range map[string]string{
		"":               `"size":300,"pools":["compute","storage","catchall"],"nodes":2,"machines":0},{"name":"debian-12","id":"` + older + `","current":false`,
		"?current=false": `[{"name":"debian-12","id":"` + older + `"`,
		"?pool=storage":  `"pools":["compute","storage","catchall"],"nodes":2,"machines":0}]`,
		"?name=fedora":   `[]`,
	} {
		if got := compact(s.do(request{path: "/api/v1/images" + query}).Body.String()); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}

// TestPlan: a machine is explained by its MAC or its node. What may be secret in its settings
// is for the token of an admin alone.
func TestPlan(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		secretive := strings.Replace(farmText, "{kernelArgs: debug}", `{kernelArgs: debug, files: {/etc/key: {content: hunter2, mode: "0600"}}, env: {PASSWORD: hunter2}}`, 1)
		writeFile(t, "drover.yaml", strings.Replace(secretive, "tags: [gpu]}", "tags: [gpu, debug]}", 1))
		if err := s.live.Reload(); err != nil {
			t.Fatal(err)
		}
	})
	viewer, operator := s.token(t, pools.RoleViewer), s.token(t, pools.RoleOperator)
	for _, tt := range []struct {
		query  string
		header map[string]string
		code   int
		want   string
	}{
		{"?node=m2", bearer(secret), 200, `"content":"hunter2"`},
		{"?mac=52-54-00-00-01-02", bearer(secret), 200, `"node":"m2"`},
		{"?node=m2", bearer(viewer), 200, `"hidden":true`},
		{"?node=m2", bearer(operator), 200, `"/etc/key":{"content":"","mode":"0600"}`},
		{"?node=m2", s.session(t), 200, `"hidden":true`},
		{"?node=m2", bearer(viewer), 200, `"kernelArgs[0]":{"file":"drover.yaml","line":4,`},
		{"?node=m2&firmware=bios", bearer(viewer), 200, `"boot":{"server":"10.28.0.2","file":"undionly.kpxe"}`},
		{"?mac=02:00:00:00:00:01", bearer(viewer), 200, `"catchall":true`},
		{"?node=m2&ipv6=true", bearer(viewer), 404, `node \"m2\" has IPv4 only (drover.yaml:8)`},
		{"?node=m9", bearer(viewer), 404, `no machine is known to be the node`},
		{"?mac=x", bearer(viewer), 400, `"field":"mac"`},
		{"", bearer(viewer), 400, "name one machine"},
		{"?mac=52:54:00:00:00:01&node=m1", bearer(viewer), 400, "name one machine"},
		{"?node=m1&firmware=vax", bearer(viewer), 400, `"field":"firmware"`},
	} {
		resp := s.do(request{path: "/api/v1/plan" + tt.query, anonymous: true, header: tt.header})
		got := compact(resp.Body.String())
		if resp.Code != tt.code || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %d %s, want %d with %s", tt.query, resp.Code, got, tt.code, tt.want)
		}
		if admin := tt.header["Authorization"] == "Bearer "+secret; !admin && strings.Contains(got, "hunter2") {
			t.Errorf("%s with %v has a secret: %s", tt.query, tt.header, got)
		}
	}
}

// TestNoPlan: an answer says why a machine gets none.
func TestNoPlan(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		writeFile(t, "drover.yaml", strings.Replace(farmText, "ip: 10.28.0.11}", "ip: 10.28.0.11, ignore: true}", 1))
		if err := s.live.Reload(); err != nil {
			t.Fatal(err)
		}
	})
	resp := s.do(request{path: "/api/v1/plan?mac=52:54:00:00:00:01"})
	if resp.Code != 404 || !strings.Contains(resp.Body.String(), `node \"m1\" is to be ignored (drover.yaml:7)`) {
		t.Errorf("got %d %s", resp.Code, resp.Body)
	}
}

// TestCheckConfig: a config is checked and not used.
func TestCheckConfig(t *testing.T) {
	s := newHarness(t)
	check := func(content string) string {
		t.Helper()
		body, err := json.Marshal(pools.ConfigText{Content: content})
		if err != nil {
			t.Fatal(err)
		}
		resp := s.do(request{method: "POST", path: "/api/v1/config:check", body: string(body)})
		if resp.Code != 200 {
			t.Errorf("got %d", resp.Code)
		}
		return compact(resp.Body.String())
	}
	if got := check(farmText); got != `{"good":true,"mistakes":[]}` {
		t.Errorf("a good one: %s", got)
	}
	got := check(strings.Replace(farmText, "tags: [gpu]", "tags: [gpuu]", 1))
	if !strings.Contains(got, `"good":false`) || !strings.Contains(got, `"remedy":"did you mean \"gpu\"?","where":"drover.yaml:8"`) {
		t.Errorf("a bad one: %s", got)
	}
	if n := len(s.live.Farm().Nodes()); n != 2 {
		t.Errorf("there are %d nodes", n)
	}
}
