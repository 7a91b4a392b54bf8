package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/api"
)

// machines is simulated hardware that records requests.
type machines struct {
	mu    sync.Mutex
	asked []string
	jobs  []pools.PowerJob
	audit []pools.AuditEntry
	adds  int // calls of Add
	full  error

	chassis []pools.ChassisStatus // nil: one
}

func (m *machines) Chassis() []pools.ChassisStatus {
	if m.chassis != nil {
		return m.chassis
	}
	return []pools.ChassisStatus{{Name: "m1", Address: "ilo-m1", Nodes: 45}}
}

func (m *machines) Sync(name string) error {
	if name != "m1" {
		return fmt.Errorf("%w %q", pools.ErrNoChassis, name)
	}
	m.asked = append(m.asked, "sync "+name)
	return nil
}

// Places has the node hw-c1n1 in its slot by its name, as those of the chassis hw are named.
func (m *machines) Places(nodes []pools.NodeInfo) []pools.ChassisSlot {
	out := make([]pools.ChassisSlot, len(nodes))
	for i, n := range nodes {
		out[i] = n.ChassisSlot
		if slot, ok := strings.CutPrefix(n.Name, "hw-"); ok && out[i].IsZero() {
			out[i] = pools.ChassisSlot{Chassis: "hw", Slot: slot}
		}
	}
	return out
}

func (m *machines) Switch(_ context.Context, actor string, o pools.PowerRequest) (pools.PowerJob, error) {
	if o.Action == "explode" {
		return pools.PowerJob{}, fmt.Errorf("%w: unknown action", pools.ErrPowerRequest)
	}
	if slices.Contains(o.Nodes, "nobody") {
		return pools.PowerJob{}, fmt.Errorf("%w: %q", pools.ErrNotFound, "nobody")
	}
	m.asked = append(m.asked, fmt.Sprintf("%s %v%s%s%s wait %s by %s", o.Action, o.Nodes, o.Pool, o.Chassis, o.Tag, o.Wait, strings.Fields(actor)[0]))
	return pools.PowerJob{ID: "j1", Action: o.Action}, nil
}

func (m *machines) Preview(o pools.PowerRequest) (pools.PowerJob, error) {
	if o.Action == "explode" {
		return pools.PowerJob{}, fmt.Errorf("%w: unknown action", pools.ErrPowerRequest)
	}
	job := pools.PowerJob{Action: o.Action}
	if o.Pool == "compute" {
		o.Nodes = []string{"m1", "m2"}
	}
	for _, name := range o.Nodes {
		job.Nodes = append(job.Nodes, pools.PowerNode{Name: name})
	}
	return job, nil
}

func (m *machines) Jobs() []pools.PowerJob { return m.jobs }

func (m *machines) Job(id string) (pools.PowerJob, bool) { return pools.PowerJob{ID: id}, id == "j1" }

func (m *machines) Add(entries ...pools.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adds++
	m.audit = append(entries, m.audit...)
	return m.full
}

func (m *machines) List(limit int) ([]pools.AuditEntry, error) {
	return m.audit[:min(limit, len(m.audit))], nil
}

func managed(t *testing.T) (*machines, *harness) {
	m := &machines{}
	return m, newHarness(t, func(s *harness) { s.Hardware, s.Power, s.Audit = m, m, m })
}

func TestHardwareAPI(t *testing.T) {
	const power, batch = "/api/v1/power", "/api/v1/nodes:batch"
	post := func(path, body string) request { return request{method: "POST", path: path, body: body} }
	n4 := strings.NewReplacer("n3", "n4", "00-03", "00-04", "0.13", "0.14").Replace(n3)
	for _, tt := range []struct {
		name  string
		req   request
		code  int
		want  string
		asked string
	}{
		{"chassis", request{path: "/api/v1/chassis"}, 200, `"name":"m1"`, ""},
		{"sync", post("/api/v1/chassis/m1/sync", ""), 202, "", "sync m1"},
		{"sync what is not there", post("/api/v1/chassis/m2/sync", ""), 404, `no such chassis in the config \"m2\"`, ""},
		{"sync by GET", request{path: "/api/v1/chassis/m1/sync"}, 405, "", ""},
		{"switch nodes", post(power, `{"action": "pxe", "nodes": ["m1", "m2"], "wait": "5m"}`), 202, `"id":"j1"`, "pxe [m1 m2] wait 5m by token"},
		{"switch a pool", post(power, `{"action": "off", "pool": "compute", "tag": "gpu"}`), 202, `"id":"j1"`, "off []computegpu wait 0s by token"},
		{"an order that is refused", post(power, `{"action": "explode"}`), 400, "unknown action", ""},
		{"nobody", post(power, `{"action": "on", "nodes": ["nobody"]}`), 404, "nobody", ""},
		{"an unknown field", post(power, `{"action": "on", "node": "m1"}`), 400, `unknown key \"node\" (did you mean \"nodes\"?)`, ""},
		{"a field twice", post(power, `{"action": "on", "action": "off"}`), 400, `duplicate key \"action\"`, ""},
		{"one node alone", post(power, `{"action": "on", "nodes": "m1"}`), 400, "nodes", ""},
		{"a list", post(power, `[]`), 400, "the body is not an object, but a list", ""},
		{"a wait that is none", post(power, `{"action": "on", "nodes": ["m1"], "wait": "soon"}`), 400, "not a duration", ""},
		{"jobs", request{path: power}, 200, "", ""},
		{"a job", request{path: power + "/j1"}, 200, `"id":"j1"`, ""},
		{"a job that is forgotten", request{path: power + "/j2"}, 404, "no such power job", ""},
		{"audit", request{path: "/api/v1/audit?limit=1"}, 200, "[]", ""},
		{"audit with a bad limit", request{path: "/api/v1/audit?limit=x"}, 400, "limit", ""},
		{"batch", post(batch, `{"changes": [{"new": `+n3+`}, {"old": null, "new": `+n4+`}]}`), 200, `"changed":2`, ""},
		{"batch: the second is wrong", post(batch, `{"changes": [{"new": `+n3+`}, {"new": `+strings.Replace(n3, "n3", "n4", 1)+`}]}`), 400, "is already that of", ""},
		{"batch: a declared one", post(batch, `{"changes": [{"new": `+strings.Replace(n3, "n3", "m1", 1)+`}]}`), 409, "change it there", ""},
		{"batch: not as it was", post(batch, `{"changes": [{"old": `+n3+`}]}`), 409, "changed meanwhile", ""},
		{"batch: no list", post(batch, `{"nodes": []}`), 400, `unknown key \"nodes\" (known: changes)`, ""},
		{"batch: more than that", post(batch, `{"changes": [], "force": true}`), 400, `unknown key \"force\"`, ""},
		{"batch: no object", post(batch, `{"changes": [1]}`), 400, "changes[0]: want keys with values", ""},
		{"batch: nothing", post(batch, `{"changes": [{}]}`), 400, "a change has neither old nor new", ""},
		{"batch: an unknown field", post(batch, `{"changes": [{"put": 1}]}`), 400, `unknown key \"changes[0].put\" (known: new, old)`, ""},
		{"batch: a bad node", post(batch, `{"changes": [{"new": {"name": 7}}]}`), 400, `changes[0].new.name: want a string, not 7`, ""},
		{"a place", post("/api/v1/nodes", with(`"place": {"chassis": "m1", "slot": "c1n1"}`)), 201, `"path":"chassis m1 c1n1"`, ""},
		{"a place that is none", post("/api/v1/nodes", with(`"place": {"chassis": "m1"}`)), 400, `\"\" in \"m1\" is no place (place: {chassis: m1, slot: c12n1})`, ""},
		{"a program", post("/api/v1/nodes", with(`"power": {"driver": "exec", "program": "/bin/sh"}`)), 400, "declare the node in the config file", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, s := managed(t)
			resp := s.do(tt.req)
			if got := compact(resp.Body.String()); resp.Code != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s\nwant %d with %s", resp.Code, got, tt.code, tt.want)
			}
			if got := strings.Join(m.asked, ","); got != tt.asked {
				t.Errorf("asked %q, want %q", got, tt.asked)
			}
			if changed := len(s.store.nodes) > 0; changed != (tt.code == 200 && tt.req.path == batch || tt.code == 201) {
				t.Errorf("stored %v", s.store.nodes)
			}
		})
	}
}

// TestHardwareIsGuarded: a session is enough for reading; without one nothing is shown.
func TestHardwareIsGuarded(t *testing.T) {
	m, s := managed(t)
	cookie := s.session(t)
	for _, path := range []string{"/api/v1/power", "/api/v1/nodes:batch", "/api/v1/chassis/m1/sync"} {
		for _, header := range []map[string]string{nil, cookie} {
			if resp := s.do(request{method: "POST", path: path, anonymous: true, header: header, body: `{"action": "off", "pool": "compute"}`}); resp.Code != 401 {
				t.Errorf("%s: got %d", path, resp.Code)
			}
		}
	}
	for _, path := range []string{"/api/v1/power", "/api/v1/audit", "/api/v1/chassis"} {
		if resp := s.do(request{path: path, anonymous: true}); resp.Code != 401 {
			t.Errorf("%s: nobody got %d", path, resp.Code)
		}
		if resp := s.do(request{path: path, anonymous: true, header: cookie}); resp.Code != 200 {
			t.Errorf("%s: a session got %d", path, resp.Code)
		}
	}
	if len(m.asked) > 0 {
		t.Errorf("asked %v", m.asked)
	}
}

// TestAudit: the audit has the client of each change, also of changes by the page.
func TestAudit(t *testing.T) {
	m, s := managed(t)
	for _, r := range []request{
		{method: "POST", path: "/api/v1/nodes", body: n3},
		{method: "PATCH", path: "/api/v1/nodes/n3", body: `{"tags": null}`},
		{method: "DELETE", path: "/api/v1/nodes/n3"},
		{method: "POST", path: "/api/v1/nodes", body: strings.Replace(n3, "n3", "m1", 1)}, // refused
	} {
		s.do(r)
	}
	s.change(t, url.Values{"do": {"add"}, "in-name": {"n5"}, "in-pool": {"compute"}, "in-macs": {"525400000077"}, "in-ip": {"10.28.0.15"}})
	m.full = errors.New("the disk is full")
	s.do(request{method: "DELETE", path: "/api/v1/nodes/n5"})
	var lines []string
	for _, e := range slices.Backward(m.audit) {
		lines = append(lines, strings.Fields(e.Actor)[0]+" "+e.Action+" "+e.Node+" "+e.Result)
	}
	want := "token add node n3 done,token change node n3 done,token remove node n3 done,page add node n5 done,token remove node n5 done"
	if got := strings.Join(lines, ","); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.log.String(); !strings.Contains(got, "audit not stored") || strings.Contains(got, secret) {
		t.Errorf("the log says\n%s", got)
	}
	if got := compact(s.do(request{path: "/api/v1/audit?node=n5&limit=1"}).Body.String()); !strings.Contains(got, "remove node") || strings.Contains(got, "add node") {
		t.Errorf("of one node: got %s", got)
	}
}

// TestPowerForm: the page switches a node after a preview, and shows the result.
func TestPowerForm(t *testing.T) {
	m, s := managed(t)
	open := s.browse(t, "/change?do=power&pick=m1")
	fixture.WantText(t, "the form", open, "Off asks no operating system", `<option value="">choose …</option>`)
	fixture.WantNoText(t, "the form", open, "selected", `value="do"`)
	resp := s.change(t, url.Values{"do": {"power"}, "pick": {"m1"}, "in-action": {"pxe"}})
	if resp.Code != 303 || resp.Header().Get("Location") != "/power" || strings.Join(m.asked, ",") != "pxe [m1] wait 0s by page" {
		t.Errorf("got %d to %s, asked %v", resp.Code, resp.Header().Get("Location"), m.asked)
	}
	m.jobs = []pools.PowerJob{
		{ID: "j2", Action: "pxe", Nodes: []pools.PowerNode{{Name: "m1", Step: "pxe once", Time: epoch}}},
		{ID: "j1", Action: "off", Ended: epoch, Nodes: []pools.PowerNode{
			{Name: "m1", Step: "done", State: "off", Time: epoch}, {Name: "m2", Step: "failed", State: "unknown", Error: "<script>", Time: epoch.Add(-time.Minute)},
		}},
	}
	fixture.WantText(t, "the jobs", s.browse(t, "/power"), "0 of 1 done, running", "1 of 2 failed", "m2: &lt;script&gt;")
	fixture.WantText(t, "the machine", s.browse(t, "/nodes/m1"), "pxe once", "off")
}

// TestWarnings: a warning does not make the server unready.
func TestWarnings(t *testing.T) {
	problems := []api.Problem{{Part: "chassis m1", Problem: "unreachable", Warning: true}}
	s := newHarness(t, func(s *harness) { s.Ready = func(context.Context) []api.Problem { return problems } })
	if resp := s.do(request{path: "/readyz"}); resp.Code != 200 || !strings.Contains(compact(resp.Body.String()), `"ready":true,"problems":[{"part":"chassis m1"`) {
		t.Errorf("a warning: got %d %s", resp.Code, resp.Body)
	}
	page := s.do(request{path: "/", anonymous: true, header: s.session(t)}).Body.String()
	if strings.Contains(page, "drover is not ready") || !strings.Contains(page, "<b>chassis m1</b> unreachable") {
		t.Errorf("the page is\n%s", page)
	}
	problems = append(problems, api.Problem{Part: "image x", Problem: "not there"})
	if resp := s.do(request{path: "/readyz"}); resp.Code != 503 {
		t.Errorf("a problem: got %d", resp.Code)
	}
}
