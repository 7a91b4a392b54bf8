package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/resolve"
)

// post submits a form of the page, as a browser with a session does.
func (s *harness) post(header map[string]string, values url.Values) answer {
	return s.do(request{
		method: "POST", path: "/change", anonymous: true, header: header,
		body: values.Encode(), contentType: "application/x-www-form-urlencoded",
	})
}

// change submits a form twice, for its preview and to do what that shows. It returns the
// first answer that is an error.
func (s *harness) change(t *testing.T, values url.Values) answer {
	t.Helper()
	return s.changeAs(s.session(t), values)
}

// seen are the fingerprints of what a preview shows.
var seen = regexp.MustCompile(`name="seen" value="([0-9A-Za-z_-]+)"`)

func (s *harness) changeAs(header map[string]string, values url.Values) answer {
	v := maps.Clone(values)
	v.Set("step", "preview")
	resp := s.post(header, v)
	m := seen.FindStringSubmatch(resp.Body.String())
	if resp.Code != 200 || m == nil {
		return resp
	}
	v.Set("step", "do")
	v.Set("seen", m[1])
	return s.post(header, v)
}

// TestOpenForm: the link beside an unknown machine opens a form with its MAC, and no pool is
// chosen in it.
func TestOpenForm(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Unknowns = someUnknowns() })
	fixture.WantText(t, "the list", s.browse(t, "/unknown"), `href="/change?do=add&amp;pick=52%3A54%3A00%3A00%3A00%3A77"`)
	got := s.browse(t, "/change?do=add&pick=52-54-00-00-00-77")
	fixture.WantText(t, "the form", got, `name="in-macs" value="52:54:00:00:00:77"`, `<option value="compute">compute</option>`)
	fixture.WantNoText(t, "the form", got, "data-poll", " selected")
	fixture.WantText(t, "a form without a MAC", s.browse(t, "/change?do=add&pick=%3Cscript%3E"), `name="in-macs" value=""`)
	fixture.WantText(t, "forget", s.browse(t, "/change?do=forget&pick=52:54:00:00:00:77"), "This will change 1", `value="do">Forget`)
}

func TestForms(t *testing.T) {
	n6 := func(set ...string) url.Values {
		v := url.Values{"do": {"add"}, "in-name": {"n6"}, "in-pool": {"compute"}, "in-macs": {"52-54-00-00-00-77, 525400000078"}, "in-ip": {" 10.28.0.16 "}, "in-tags": {"debug gpu"}}
		for i := 0; i < len(set); i += 2 {
			v.Set(set[i], set[i+1])
		}
		return v
	}
	of := func(do string, set ...string) url.Values {
		v := url.Values{"do": {do}}
		for i := 0; i < len(set); i += 2 {
			v.Add(set[i], set[i+1])
		}
		return v
	}
	tests := []struct {
		name   string
		values url.Values
		code   int
		want   string // part of the page, or the target of the redirect
		is     string // n3 afterwards: pool, tags and name; empty: as before
	}{
		{"add", n6(), 303, "/nodes/n6", ""},
		{"add what is declared", n6("in-name", "m1"), 409, "declared in drover.yaml:7", ""},
		{"add with mistakes", n6("in-ip", "10.28.0.256"), 400, "is not an IP address", ""},
		{"add without a name", n6("in-name", " "), 400, "the node has no name", ""},
		{"add without a pool", n6("in-pool", ""), 400, "choose a pool", ""},
		{"add to a pool that is not there", n6("in-pool", "x"), 400, "unknown pool", ""},
		{"what was typed is kept", n6("in-pool", "storage", "in-name", `"><u>`), 400, `<option value="storage" selected>storage</option>`, ""},
		{"forget", of("forget", "pick", "52:54:00:00:00:77"), 303, "/unknown", ""},
		{"forget what is not there", of("forget", "pick", "52:54:00:00:00:79"), 200, "stays: no unknown machine", ""},
		{"forget what is no MAC", of("forget", "pick", "x"), 200, "is not a MAC address", ""},
		{"nothing is chosen", of("forget"), 400, "nothing is chosen", ""},
		{"too much", n6("in-tags", strings.Repeat("a ", 1<<22)), 400, "no form of the page", ""},
		{"add several", of("list", "in-pool", "compute", "in-nodes", "name,mac,ip\r\nx1,02:00:00:00:00:01,10.28.0.61\r\nx2,02:00:00:00:00:02,10.28.0.62\r\n"), 303, "/nodes", ""},
		{"add several, as YAML", of("list", "in-nodes", "nodes:\n- {name: x1, pool: storage, macs: ['02:00:00:00:00:01'], ip: 10.28.0.61}\n"), 303, "/nodes", ""},
		{"add several with mistakes", of("list", "in-pool", "compute", "in-nodes", "name,mac\nx1,zz\nx1,02:00:00:00:00:02"), 400, "nodes.csv:2", ""},
		{"add several that are there", of("list", "in-pool", "compute", "in-nodes", "name\nm1\n"), 409, "declared in drover.yaml:7", ""},
		{"add several of no pool", of("list", "in-nodes", "name\nx1\n"), 400, "has no pool: choose one", ""},
		{"add nothing", of("list", "in-pool", "compute", "in-nodes", ""), 400, "an empty table", ""},
		{"adopt", of("adopt", "pick", "52:54:00:00:00:77", "in-pool", "compute", "in-name", "x{{.Index}}", "in-first", "7"), 303, "/nodes", ""},
		{"adopt with a name that is none", of("adopt", "pick", "52:54:00:00:00:77", "in-pool", "compute", "in-name", "x{{.Nope}}"), 400, "has other words", ""},
		{"adopt what is not there", of("adopt", "pick", "52:54:00:00:00:79", "in-pool", "compute", "in-name", "x{{.MAC}}"), 200, "stays: no unknown machine", ""},
		{"adopt, of no pool", of("adopt", "pick", "52:54:00:00:00:77", "in-name", "x"), 400, "choose a pool", ""},
		{"forget boots", of("boots", "pick", "m1"), 303, "/nodes/m1", ""},
		{"forget no boots", of("boots", "pick", "m2"), 200, "stays: no boot of node", ""},
		{"edit", of("edit", "pick", "n3", "in-name", "n3", "in-pool", "storage", "in-macs", "52:54:00:00:00:03", "in-ip", "10.28.0.13"), 303, "/nodes/n3", "storage [] n3"},
		{"rename", of("edit", "pick", "n3", "in-name", "n9", "in-pool", "compute", "in-macs", "52:54:00:00:00:03", "in-ip", "10.28.0.13", "in-tags", "debug"), 303, "/nodes/n9", "compute [debug] n9"},
		{"move", of("move", "pick", "n3", "pick", "n4", "pick", "m1", "in-pool", "storage"), 303, "/nodes", "storage [debug] n3"},
		{"move a declared one", of("move", "pick", "m1", "in-pool", "storage"), 200, "declared in drover.yaml:7: change it there", ""},
		{"move nowhere", of("move", "pick", "n3"), 400, "choose a pool", ""},
		{"tag", of("tag", "pick", "n3", "in-add", "gpu", "in-remove", "debug"), 303, "/nodes/n3", "compute [gpu] n3"},
		{"tag with what is not there", of("tag", "pick", "n3", "in-add", "nope"), 400, "unknown tag", ""},
		{"remove", of("remove", "pick", "n3"), 303, "/nodes", "gone"},
		{"next boot", of("next", "pick", "m1", "in-next", "local"), 303, "/nodes/m1", ""},
		{"next boot of nothing", of("next", "pick", "nobody", "in-next", "local"), 200, "no such node", ""},
		{"end a lease", of("release", "pick", "10.28.72.10"), 303, "/leases", ""},
		{"end no lease", of("release", "pick", "10.28.72.11"), 200, "no lease of 10.28.72.11", ""},
		{"read a chassis", of("read", "pick", "m1"), 303, "/chassis", ""},
		{"read no chassis", of("read", "pick", "m9"), 200, "no such chassis", ""},
		{"reload", of("reload"), 303, "/config", ""},
		{"no action", of("explode", "pick", "m1"), 404, "no action", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newHarness(t, func(s *harness) {
				s.Unknowns, s.Leases = someUnknowns(), someLeases()
				s.Boots = bootList{boot(1, "m1", "tenant-a", 5, time.Hour, "")}
			})
			s.addNodes(t)
			resp := s.change(t, tt.values)
			got := resp.Body.String()
			if resp.Code == 303 {
				got = resp.Header().Get("Location")
			}
			if resp.Code != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s\nwant %d with %s", resp.Code, got, tt.code, tt.want)
			}
			is := "gone"
			if n, ok := s.live.Farm().NodeOf(pools.MAC{0x52, 0x54, 0, 0, 0, 3}); ok {
				is = n.Pool + " [" + strings.Join(n.Tags, " ") + "] " + n.Name
			}
			if tt.is == "" {
				tt.is = "compute [debug] n3"
			}
			if is != tt.is {
				t.Errorf("the node is %s, want %s", is, tt.is)
			}
			if strings.Contains(resp.Body.String()+s.log.String(), secret) || strings.Contains(got, `"><u>`) {
				t.Error("the answer or the log contains the token, or HTML of the client")
			}
		})
	}
}

// TestAdopt: a form makes nodes of many unknown machines, with names and addresses of their own.
func TestAdopt(t *testing.T) {
	u := unknowns{}
	for i := range 150 {
		u = append(u, pools.Unknown{MAC: numbered(i), Last: epoch, Count: 1, Pool: "catchall", Address: numberedAddr(i)})
	}
	s := newHarness(t, func(s *harness) { s.Unknowns = &u })
	form := s.browse(t, "/change?do=adopt&all=yes")
	fixture.WantText(t, "the form", form, "Make nodes of 150 machines", "node-{{.MAC}}")
	values := url.Values{"do": {"adopt"}, "picks": {picks.FindStringSubmatch(form)[1]}, "in-pool": {"compute"}, "in-name": {"x{{.Index}}"}, "in-first": {"100"}, "in-tags": {"debug"}}
	shown := s.post(s.session(t), values).Body.String()
	fixture.WantText(t, "the preview", shown, "This will change 150", "<summary>and 50 more</summary>", `<th scope="row">x249</th>`)
	if resp := s.change(t, values); resp.Code != 303 {
		t.Fatalf("got %d %s", resp.Code, resp.Body)
	}
	first, _ := s.live.Farm().Node("x100")
	last, ok := s.live.Farm().Node("x249")
	if !ok || last.MACs[0] != numbered(149) || last.Tags[0] != "debug" || !first.IP.IsValid() || first.IP == last.IP || len(u) != 0 {
		t.Errorf("got %+v and %+v, %d machines are still unknown", first, last, len(u))
	}
	limited := s.sessionOf(t, s.token(t, pools.RoleOperator, "compute"))
	s.Unknowns = someUnknowns()
	values.Set("picks", "52:54:00:00:00:77")
	resp := s.changeAs(limited, values)
	if _, made := s.live.Farm().NodeOf(pools.MAC{0x52, 0x54, 0, 0, 0, 0x77}); made || resp.Code == http.StatusSeeOther {
		t.Errorf("a machine of another pool: got %d", resp.Code)
	}
}

// TestLinesOfBrowsers: a browser sends the lines of a text as it has shown them.
func TestLinesOfBrowsers(t *testing.T) {
	s := newHarness(t)
	header := s.session(t)
	values := url.Values{"do": {"list"}, "in-pool": {"compute"}, "in-nodes": {"name,mac,ip\r\nx1,02:00:00:00:00:01,10.28.0.61\r\n"}}
	shown := s.post(header, values).Body.String()
	fixture.WantText(t, "the preview", shown, "name,mac,ip\nx1,02:00:00:00:00:01,10.28.0.61\n</textarea>")
	values.Set("seen", seen.FindStringSubmatch(shown)[1])
	values.Set("step", "do")
	values.Set("in-nodes", "name,mac,ip\nx1,02:00:00:00:00:01,10.28.0.61\n")
	if resp := s.post(header, values); resp.Code != 303 {
		t.Errorf("got %d", resp.Code)
	}
}

// TestPreview: a form does what its preview has shown, and nothing else.
func TestPreview(t *testing.T) {
	s := newHarness(t)
	s.addNodes(t)
	header := s.session(t)
	values := url.Values{"do": {"move"}, "pick": {"n3", "n4", "m1"}, "in-pool": {"storage"}, "step": {"preview"}}
	shown := s.post(header, values)
	fixture.WantText(t, "the preview", shown.Body.String(), "This will change 2", "pool: compute → storage", "stays: declared in drover.yaml:7", "Move 2</button>")
	if n, _ := s.live.Farm().Node("n3"); n.Pool != "compute" {
		t.Error("a preview has moved the node")
	}
	values.Set("step", "do")
	for name, shown := range map[string]string{"nothing": "", "another": strings.Repeat("0", 22)} {
		values.Set("seen", shown)
		if resp := s.post(header, values); resp.Code != 409 || !strings.Contains(resp.Body.String(), "no longer what you have seen") {
			t.Errorf("%s: got %d", name, resp.Code)
		}
	}
	values.Set("seen", seen.FindStringSubmatch(shown.Body.String())[1])
	s.do(request{method: "PATCH", path: "/api/v1/nodes/n4", body: `{"pool": "storage"}`, contentType: "application/merge-patch+json"})
	if resp := s.post(header, values); resp.Code != 409 {
		t.Errorf("after a change by somebody else: got %d", resp.Code)
	}
	if n, _ := s.live.Farm().Node("n3"); n.Pool != "compute" {
		t.Error("what was not shown was done")
	}
}

// picks is the field with everything that a form would change.
var picks = regexp.MustCompile(`name="picks" value="([^"]*)"`)

// TestAll: what a filter describes can be changed at once, and nothing else.
func TestAll(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Unknowns, s.Leases = someUnknowns(), someLeases() })
	s.addNodes(t)
	for _, tt := range []struct{ query, in, out string }{
		{"do=forget&q=sw1", "52:54:00:00:00:66", "52:54:00:00:00:77"},
		{"do=release&state=declined", "10.28.72.13", "10.28.72.10"},
		{"do=release", "10.28.72.10", "10.28.72.11"}, // the second has ended
	} {
		form := s.browse(t, "/change?all=yes&"+tt.query)
		fixture.WantText(t, tt.query, picks.FindString(form), tt.in)
		fixture.WantNoText(t, tt.query, picks.FindString(form), tt.out)
	}
	got := s.browse(t, "/change?do=tag&all=yes&tag=debug&pick=m1")
	fixture.WantText(t, "the form", got, "Tag 3 nodes")
	fixture.WantText(t, "the form", picks.FindString(got), "n3", "n5")
	fixture.WantNoText(t, "the form", picks.FindString(got), "m1")
}

// TestFormsAreGuarded: a form without a session, with one that only reads, of another pool or
// from another site is an error.
func TestFormsAreGuarded(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Unknowns, s.Leases = someUnknowns(), someLeases() })
	s.addNodes(t)
	values := url.Values{"do": {"add"}, "in-name": {"n6"}, "in-pool": {"compute"}, "in-macs": {"52:54:00:00:00:77"}, "in-ip": {"10.28.0.16"}}
	if resp := s.post(nil, values); resp.Code != 401 || !strings.Contains(resp.Body.String(), "The session is over.") {
		t.Errorf("no session: got %d", resp.Code)
	}
	header := s.session(t)
	header["Sec-Fetch-Site"] = "cross-site"
	if resp := s.post(header, values); resp.Code != 403 {
		t.Errorf("from another site: got %d", resp.Code)
	}
	viewer := s.sessionOf(t, s.token(t, pools.RoleViewer))
	if resp := s.changeAs(viewer, values); resp.Code != 403 || !strings.Contains(resp.Body.String(), "needs the role operator") {
		t.Errorf("a viewer: got %d", resp.Code)
	}
	for _, path := range []string{"/", "/nodes", "/nodes/n3", "/nodes/m1", "/unknown", "/pools", "/tags", "/clusters", "/chassis", "/leases", "/power", "/audit", "/config"} {
		resp := s.do(request{path: path, anonymous: true, header: viewer})
		fixture.WantNoText(t, path+" of a viewer", resp.Body.String(), "/change", `type="checkbox"`)
	}
	if resp := s.do(request{path: "/change?do=add", anonymous: true, header: viewer}); resp.Code != 403 {
		t.Errorf("a viewer opens a form: got %d", resp.Code)
	}
	storage := s.sessionOf(t, s.token(t, pools.RoleOperator, "storage"))
	if resp := s.changeAs(storage, values); resp.Code != 403 || !strings.Contains(resp.Body.String(), "for machines of the pools") {
		t.Errorf("an operator of another pool: got %d %s", resp.Code, resp.Body)
	}
	if resp := s.changeAs(storage, url.Values{"do": {"reload"}}); resp.Code != 403 {
		t.Errorf("an operator reloads the config: got %d", resp.Code)
	}
	for _, v := range []url.Values{
		{"do": {"move"}, "pick": {"n3"}, "in-pool": {"storage"}}, {"do": {"remove"}, "pick": {"n3"}}, {"do": {"next"}, "pick": {"m1"}, "in-next": {"local"}},
		{"do": {"release"}, "pick": {"10.28.72.10"}}, {"do": {"forget"}, "pick": {"52:54:00:00:00:77"}}, {"do": {"read"}, "pick": {"m1"}},
	} {
		if resp := s.changeAs(storage, v); !strings.Contains(resp.Body.String(), "Nothing would change") {
			t.Errorf("%s by an operator of another pool: got %d %s", v.Get("do"), resp.Code, resp.Body)
		}
	}
	if s.live.Farm().Resolve(resolve.Query{MAC: pools.MAC{0x52, 0x54, 0, 0, 0, 0x77}}).Node == "n6" {
		t.Error("the node was added")
	}
}
