package web_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/config/mistake"
	"drover/web/api"
	"drover/web/page"
)

// boot returns a record that reached the first n steps, one each second, the last at the
// time ago before the epoch.
func boot(mac byte, node, cluster string, n int, ago time.Duration, failed string) boots.Record {
	start := epoch.Add(-ago - time.Duration(n-1)*time.Second)
	b := boots.Record{
		ID: node, MAC: pools.MAC{0x52, 0x54, 0, 0, 0, mac}, Node: node, Pool: "compute", Cluster: cluster,
		Image: "debian-12", Started: start, Error: failed,
	}
	steps := slices.DeleteFunc(boots.Steps(), func(s boots.StepInfo) bool { return s.Optional })
	for i, s := range steps[:n] {
		b.Steps = append(b.Steps, boots.StepTime{Step: s.Step, Time: start.Add(time.Duration(i) * time.Second)})
	}
	if failed != "" {
		b.Steps = append(b.Steps, boots.StepTime{Step: steps[n].Step, Time: epoch, Error: failed})
	}
	return b
}

// browse returns a page, as a browser with the session of the server's own token gets it.
func (s *harness) browse(t *testing.T, path string) string {
	t.Helper()
	resp := s.do(request{path: path, anonymous: true, header: s.session(t)})
	if resp.Code != http.StatusOK {
		t.Fatalf("%s: got %d\n%s", path, resp.Code, resp.Body)
	}
	return resp.Body.String()
}

// rows returns the keys of the rows of a page.
func rows(page string) (keys []string) {
	for _, m := range regexp.MustCompile(`<tr id="row-([^"]*)"`).FindAllStringSubmatch(page, -1) {
		keys = append(keys, html.UnescapeString(m[1]))
	}
	return keys
}

// addNodes adds n3, n4 and n5.
func (s *harness) addNodes(t *testing.T) {
	t.Helper()
	for _, n := range []string{"3", "4", "5"} {
		body := strings.NewReplacer("n3", "n"+n, "00-03", "00-0"+n, "0.13", "0.1"+n).Replace(n3)
		if resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: body}); resp.Code != 201 {
			t.Fatal(resp.Body.String())
		}
	}
}

// TestOverview: the numbers lead to lists, errors with one cause are one line, and what is
// not ready is told.
func TestOverview(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		s.Boots = bootList{
			boot(1, "m1", "tenant-a", 16, 2*time.Hour, ""),
			boot(2, "m2", "tenant-a", 9, time.Minute, ""),
			boot(3, "n3", "tenant-a", 8, time.Minute, "GET http://10.28.0.2/x from 10.28.0.13:41234: no answer in 12 s"),
			boot(4, "n4", "tenant-a", 8, time.Minute, "GET http://10.28.0.2/x from 10.28.0.14:51234: no answer in 13 s"),
			boot(5, "n5", "tenant-a", 8, time.Minute, "n5: no space"),
		}
		s.Ready = func(context.Context) []api.Problem {
			return []api.Problem{{Part: "image debian-12", Problem: "there is none"}, {Part: "chassis m1", Problem: "no answer", Warning: true}}
		}
		l := leases{}
		for i := byte(10); i < 20; i++ {
			l = append(l, lease(i, time.Hour))
		}
		s.Leases = &l
	})
	s.addNodes(t)
	got := s.browse(t, "/")
	fixture.WantText(t, "the overview", got,
		`<a class="count failing" href="/nodes?state=failing"><b>3</b> failing</a>`, `href="/nodes?state=booting"><b>1</b>`, `<b>5</b> machines`,
		">2 machines</a>", "from …: no answer in … s", ">n5</a>", "image: n5: no space",
		"drover is not ready", "<b>image debian-12</b> there is none", "<b>chassis m1</b> no answer",
		"10 of 11", "nearly full")
	m := regexp.MustCompile(`href="(/nodes\?cause=[0-9a-f]+)">2 machines`).FindStringSubmatch(got)
	if m == nil {
		t.Fatalf("no link to the two machines in\n%s", got)
	}
	if list := s.browse(t, m[1]); !slices.Equal(rows(list), []string{"n3", "n4"}) {
		t.Errorf("the link leads to %q", rows(list))
	}
}

func TestStates(t *testing.T) {
	late := boot(1, "m1", "tenant-a", 13, time.Hour, "")
	late.Steps = append(late.Steps, boots.StepTime{Step: boots.StepReady, Time: epoch.Add(-time.Hour)},
		boots.StepTime{Step: boots.StepJoined, Time: epoch.Add(-time.Hour)})
	queued := func(ago time.Duration) boots.Record {
		b := boot(1, "m1", "tenant-a", 8, ago, "")
		b.Steps = append(b.Steps, boots.StepTime{Step: boots.StepQueued, Time: epoch.Add(-ago)})
		return b
	}
	tests := []struct {
		name string
		boot boots.Record
		want string
	}{
		{"waits for its turn", queued(20 * time.Minute), "booting"},
		{"waits for ever", queued(time.Hour), "stuck"},
		{"just begun", boot(1, "m1", "tenant-a", 1, 0, ""), "booting"},
		{"three minutes without progress", boot(1, "m1", "tenant-a", 6, 3*time.Minute, ""), "booting"},
		{"and a bit", boot(1, "m1", "tenant-a", 6, 3*time.Minute+1, ""), "stuck"},
		{"an error", boot(1, "m1", "tenant-a", 6, 0, "no route"), "failing"},
		{"an error long ago", boot(1, "m1", "tenant-a", 6, time.Hour, "no route"), "failing"},
		{"ready", boot(1, "m1", "tenant-a", 16, time.Hour, ""), "ready"},
		{"joined, not ready", boot(1, "m1", "tenant-a", 15, time.Minute, ""), "booting"},
		{"ready before it says that it joined", late, "ready"},
		{"online, and no cluster to join", boot(1, "m1", "", 12, time.Hour, ""), "online"},
		{"online, and a cluster to join", boot(1, "m1", "tenant-a", 12, time.Hour, ""), "stuck"},
		{"never seen", boots.Record{MAC: pools.MAC{2}}, "new"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newHarness(t, func(s *harness) { s.Boots = bootList{tt.boot} })
			list := s.browse(t, "/nodes")
			if want := `<tr id="row-m1" class="` + tt.want + `"`; !strings.Contains(list, want) {
				_, row, _ := strings.Cut(list, `<tr id="row-m1"`)
				t.Errorf("want %s, got %.40s", want, row)
			}
			fixture.WantText(t, "its own page", s.browse(t, "/nodes/m1"), `<span class="state `+tt.want+`">`)
		})
	}
}

// TestNodeKnownByItsPort: a node without MACs is one row.
func TestNodeKnownByItsPort(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Boots = bootList{boot(9, "p1", "tenant-a", 16, time.Hour, "")} })
	if resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: `{"pool": "compute", "name": "p1", "ip": "10.28.0.19", "match": {"circuitID": "eth7"}}`}); resp.Code != 201 {
		t.Fatal(resp.Body.String())
	}
	if list := s.browse(t, "/nodes"); strings.Count(list, `id="row-p1"`) != 1 || !strings.Contains(list, `<tr id="row-p1" class="ready"`) {
		t.Errorf("got\n%s", list)
	}
	fixture.WantText(t, "its own page", s.browse(t, "/nodes/p1"), "52:54:00:00:00:09")
}

// TestPageLists: search, filters, order and place of a list are in its URL.
func TestPageLists(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		s.Boots = bootList{boot(1, "m1", "tenant-a", 16, 2*time.Hour, ""), boot(2, "m2", "tenant-a", 9, time.Minute, "")}
		s.Leases, s.Unknowns = someLeases(), someUnknowns()
		s.Audit.(*machines).audit = []pools.AuditEntry{{Time: epoch, Actor: "token ci", Action: "power off", Node: "m1", Result: "begun"}}
	})
	s.addNodes(t)
	for _, tt := range []struct{ path, want string }{
		{"/nodes", "m1 m2 n3 n4 n5"},
		{"/nodes?sort=-name", "n5 n4 n3 m2 m1"},
		{"/nodes?sort=-state&state=ready,booting", "m1 m2"},
		{"/nodes?tag=gpu", "m2"},
		{"/nodes?tag=debug&q=00%3A04", "n4"},
		{"/nodes?q=525400000005", "n5"},
		{"/nodes?q=10.28.0.1+compute+gpu", "m2"},
		{"/nodes?pool=storage", ""},
		{"/nodes?page=77", "m1 m2 n3 n4 n5"},
		{"/nodes?sort=nothing", "m1 m2 n3 n4 n5"},
		{"/pools", "compute storage catchall"},
		{"/pools?sort=name", "catchall compute storage"},
		{"/tags?sort=-name", "gpu debug"},
		{"/clusters", "tenant-a lobby"},
		{"/leases?state=declined", "10.28.72.13"},
		{"/leases?q=0d", "10.28.72.13"},
		{"/unknown?q=sw1", "52:54:00:00:00:66"},
		{"/unknown?sort=-mac", "52:54:00:00:00:77 52:54:00:00:00:66"},
	} {
		if got := strings.Join(rows(s.browse(t, tt.path)), " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.path, got, tt.want)
		}
	}
	fixture.WantText(t, "the audit", s.browse(t, "/audit?q=power"), `<a href="/nodes/m1">m1</a>`, "token ci")
	fixture.WantText(t, "no audit", s.browse(t, "/audit?q=nobody"), "Nothing fits.")
	for path, code := range map[string]int{"/nodes/m9": 404, "/nodes/m1": 200, "/nothing": 404, "/change?do=x": 404, "/change?do=move": 400} {
		if resp := s.do(request{path: path, anonymous: true, header: s.session(t)}); resp.Code != code {
			t.Errorf("%s: got %d, want %d", path, resp.Code, code)
		}
	}
}

// TestNodeView: one machine, its boots, what it would get and the line behind each value.
func TestNodeView(t *testing.T) {
	now, before := boot(1, "m1", "tenant-a", 16, time.Hour, ""), boot(1, "m1", "tenant-a", 12, 30*time.Hour, "")
	before.ID = "before"
	s := newHarness(t, func(s *harness) {
		s.Boots = bootList{now, before}
		s.Page = page.Sources{
			Explain: func(mac pools.MAC) page.Explanation {
				return page.Explanation{
					Values: []page.Value{{Field: "image", Text: "debian-12", From: "drover.yaml:6 (pools[0].image)"}},
					Reply:  "DHCP: DISCOVER of " + mac.String(), Script: "#!ipxe",
				}
			},
			Console: func(_ pools.MAC, boot string) (lines []page.ConsoleLine, listening bool) {
				if boot != "before" {
					lines = []page.ConsoleLine{{Time: epoch.Add(-time.Minute), Text: "[    1.0] eth0: link is down"}, {Time: epoch.Add(-time.Second), Text: "[    2.0] eth0: link is up"}}
				}
				return lines, true
			},
		}
		s.Images = func() []pools.ImageInfo {
			return []pools.ImageInfo{{Name: "debian-12", ID: strings.Repeat("ab", 32), Current: true, Created: epoch.Add(-time.Minute)}}
		}
		s.Power.(*machines).jobs = []pools.PowerJob{{ID: "j1", Action: "off", Ended: epoch, Nodes: []pools.PowerNode{{Name: "m1", Step: "failed", State: "on", Error: "no <b>answer", Time: epoch}}}}
	})
	got := s.browse(t, "/nodes/m1")
	fixture.WantText(t, "the machine", got, "<h1>m1</h1>", "Declared in <code>drover.yaml:7</code>", "drover.yaml:6 (pools[0].image)", "DISCOVER of 52:54:00:00:00:01", "#!ipxe",
		`href="/nodes/m1?boot=before"`, "rebuilt 60 s ago, after this boot began", "no &lt;b&gt;answer", "Joined", `href="/change?do=power&amp;pick=m1"`,
		"2 lines of this boot, the last one 1 s ago", "[    1.0] eth0: link is down\n[    2.0] eth0: link is up\n")
	fixture.WantNoText(t, "a declared machine", got, "do=edit", "do=move", "do=remove")
	fixture.WantText(t, "its earlier boot", s.browse(t, "/nodes/m1?boot=before"), "Earlier boot of 2026-11-19 05:59:49 UTC", "Its kernel has sent no line in this boot.")
}

// TestUnchanged: a browser that has the page gets no second copy of it.
func TestUnchanged(t *testing.T) {
	s := newHarness(t)
	header := s.session(t)
	first := s.do(request{path: "/nodes", anonymous: true, header: header})
	header["If-None-Match"] = first.Header().Get("ETag")
	if resp := s.do(request{path: "/nodes", anonymous: true, header: header}); resp.Code != http.StatusNotModified || resp.Body.Len() > 0 {
		t.Errorf("got %d with %d bytes", resp.Code, resp.Body.Len())
	}
	s.addNodes(t)
	if resp := s.do(request{path: "/nodes", anonymous: true, header: header}); resp.Code != 200 {
		t.Errorf("after a change: got %d", resp.Code)
	}
}

// TestReaders: people with the same rights share what is rendered of a page, and no page has the
// name or the ETag of another reader.
func TestReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that all see one snapshot
		made := 0
		s := newHarness(t, func(s *harness) {
			s.Page.Explain = func(pools.MAC) page.Explanation {
				made++
				return page.Explanation{}
			}
		})
		tags := map[string]string{}
		tokens := []string{s.token(t, pools.RoleViewer), s.token(t, pools.RoleViewer), s.token(t, pools.RoleOperator), s.token(t, pools.RoleOperator, "compute"), s.token(t, pools.RoleOperator, "compute", "storage")}
		names := []string{"viewer-0", "viewer-1", "operator-2", "operator-3", "operator-4"}
		for i, token := range tokens {
			name := names[i]
			header := s.sessionOf(t, token)
			resp := s.do(request{path: "/nodes/m1", anonymous: true, header: header})
			fixture.WantText(t, name, resp.Body.String(), `<span class="who">`+name+", ")
			for _, other := range names {
				if other != name {
					fixture.WantNoText(t, name, resp.Body.String(), other)
				}
			}
			if got, want := strings.Contains(resp.Body.String(), "do=power"), i >= 2; got != want {
				t.Errorf("%s may switch the power: %t", name, got)
			}
			tag := resp.Header().Get("ETag")
			if before := tags[tag]; before != "" {
				t.Errorf("%s and %s have one ETag", name, before)
			}
			tags[tag] = name
			for tag, of := range tags {
				header["If-None-Match"] = tag
				if resp := s.do(request{path: "/nodes/m1", anonymous: true, header: header}); (resp.Code == http.StatusNotModified) != (of == name) {
					t.Errorf("%s with the ETag of %s: got %d", name, of, resp.Code)
				}
			}
		}
		if made != 4 {
			t.Errorf("the page was made %d times for 4 kinds of rights", made)
		}
	})
}

// TestNext: a login leads to the page that was asked for, and to this server only.
func TestNext(t *testing.T) {
	s := newHarness(t)
	login := s.do(request{path: "/nodes?state=stuck&q=%22x", anonymous: true})
	fixture.WantText(t, "the login", login.Body.String(), `name="next" value="/nodes?state=stuck&amp;q=%22x"`)
	for next, want := range map[string]string{
		"/nodes?state=stuck": "/nodes?state=stuck", "https://example.org/": "/", "//example.org/x": "/", `/\example.org`: "/", "nodes": "/", "": "/",
		"/nodes\r\nSet-Cookie: a=b": "/", "javascript:alert(1)": "/",
	} {
		r := form(secret)
		r.body += "&next=" + strings.NewReplacer("%", "%25", "/", "%2F", "?", "%3F", "=", "%3D", "\r", "%0D", "\n", "%0A", " ", "+", `\`, "%5C", ":", "%3A").Replace(next)
		if got := s.do(r).Header().Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

// hostile is the text that a machine, chassis, cluster or client sends in place of another.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>'` + "\x1b[2J\x1b]0;x\a\u202e\u200b\u2028\x00\xff" + `javascript:alert(1)`

// TestInert: texts that others influence are escaped, printable and short, on every page.
func TestInert(t *testing.T) {
	long := hostile + strings.Repeat("A", 5000)
	s := newHarness(t, func(s *harness) {
		b := boot(1, "m1", "tenant-a", 8, time.Minute, long)
		for i := range b.Steps {
			b.Steps[i].Detail = long
		}
		stray := boot(0x77, pools.CatchAllName(pools.MAC{0x52, 0x54, 0, 0, 0, 0x77}), hostile, 5, time.Minute, long)
		stray.Unknown, stray.Image, stray.Pool = true, hostile, hostile
		s.Boots = bootList{b, stray}
		s.Moves = func() []pools.Move {
			return []pools.Move{{Node: hostile, From: hostile, To: "tenant-a", As: "m2", Step: pools.MoveHeld, Detail: long}}
		}
		s.Leases = &leases{{Address: netip.MustParseAddr("10.28.72.13"), Pool: "catchall", Node: hostile, Declined: long, Expires: epoch.Add(time.Hour)}}
		s.Unknowns = &unknowns{{
			MAC: pools.MAC{2, 1}, Firmware: pools.Firmware(long), Class: long, Circuit: long, Remote: long,
			Inventory: &pools.Inventory{Vendor: long, Product: long, Serial: long},
		}}
		m := s.Hardware.(*machines)
		m.chassis = []pools.ChassisStatus{{Name: "m1", Address: long, Error: long, Problems: []string{long}, Counts: map[string]int{long: 1}}}
		m.jobs = []pools.PowerJob{{ID: "j1", Actor: long, Nodes: []pools.PowerNode{{Name: "m1", Step: "failed", State: long, Error: long, Time: epoch}}}}
		m.audit = []pools.AuditEntry{{Time: epoch, Actor: long, Action: long, Node: "m1", Result: long}}
		s.Ready = func(context.Context) []api.Problem {
			return []api.Problem{{Part: "cluster tenant-a", Problem: long}, {Part: "chassis m1", Problem: long, Warning: true}}
		}
		s.Images = func() []pools.ImageInfo {
			return []pools.ImageInfo{{Name: "debian-12", ID: "ab", KernelVersion: long, Platform: long, Source: long}}
		}
		s.Page = page.Sources{
			Explain: func(pools.MAC) page.Explanation {
				return page.Explanation{Values: []page.Value{{Field: hostile, Text: hostile, From: hostile}}, Reply: hostile, Script: hostile, Silence: hostile, Problem: hostile}
			},
			Console: func(pools.MAC, string) ([]page.ConsoleLine, bool) {
				return []page.ConsoleLine{{Time: epoch, Text: long}}, true
			},
			Config: func() config.Status {
				return config.Status{Refused: mistake.Errors{{Origin: pools.Origin{File: "drover.yaml", Line: 3}, Msg: long, Hint: long}}}
			},
		}
	})
	for _, path := range []string{
		"/", "/nodes", "/nodes?q=" + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/nodes?state=%3Cscript%3E&sort=%22%3E%3Cscript%3E", "/nodes/m1", "/nodes/m2",
		"/nodes/node-525400000077", "/unknown", "/pools", "/tags", "/clusters", "/images", "/chassis", "/leases", "/power", "/audit", "/config",
		"/change?do=power&pick=m1&pick=%3Cscript%3Ealert(1)%3C/script%3E", "/change?do=forget&pick=%3Cscript%3E",
	} {
		got := s.browse(t, path)
		fixture.WantNoText(t, path, strings.NewReplacer(`<script src="/page.js" defer></script>`, "").Replace(got),
			"<script", "<img", "\x1b", "\x00", "\a", "\u202e", "\u200b", "\u2028", "\xff", strings.Repeat("A", 2000), `href="javascript:`)
		if !regexp.MustCompile("^[\n\t -~…·↑↓→’–\ufffd]*$").MatchString(got) {
			t.Errorf("%s has other characters", path)
		}
	}
	if resp := s.do(request{path: "/nodes/%3Cscript%3E%1b", anonymous: true, header: s.session(t)}); resp.Code != 404 || strings.ContainsAny(resp.Body.String(), "\x1b") || strings.Contains(resp.Body.String(), "<script>") {
		t.Errorf("an unknown machine: got %d %s", resp.Code, resp.Body)
	}
}

// TestFarmOfThousands: a page of a large farm is small, in any order and with any filter.
func TestFarmOfThousands(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		store := map[string]pools.PoolNode{}
		var all bootList
		for i := range 10_000 {
			name := fmt.Sprintf("m%dc%dn%d", i/180+1, i%180/4+1, i%4+1)
			mac := pools.MAC{0x02, 0, 0, 1, byte(i >> 8), byte(i)}
			store[name] = pools.PoolNode{Pool: "compute", Node: pools.Node{Name: name, MACs: []pools.MAC{mac}, IP: netip.AddrFrom4([4]byte{10, 28, byte(80 + i>>8), byte(i)})}}
			b := boot(0, name, "tenant-a", 16, time.Hour, "")
			if i%5 == 0 {
				b = boot(0, name, "tenant-a", 5+i%7, time.Minute, "")
			}
			b.MAC, b.ID = mac, fmt.Sprintf("b%06d", 10_000-i)
			all = append(all, b)
		}
		s.store.nodes = store
		if err := s.live.Reload(); err != nil {
			t.Fatal(err)
		}
		s.Boots = all
	})
	for _, path := range []string{"/", "/nodes", "/nodes?sort=-since", "/nodes?state=booting&page=20", "/nodes?q=c17", "/nodes/m1c1n1", "/pools"} {
		got := s.browse(t, path)
		if n := len(rows(got)); n > 100 || len(got) > 100_000 {
			t.Errorf("%s: got %d rows in %d bytes", path, n, len(got))
		}
	}
	fixture.WantText(t, "the list", s.browse(t, "/nodes?state=booting&page=2"), "101 to 200 of 2000", `rel="prev"`, `rel="next"`)
	if got := rows(s.browse(t, "/nodes?q=m9c"))[:3]; !slices.Equal(got, []string{"m9c1n1", "m9c1n2", "m9c1n3"}) {
		t.Errorf("got %q", got)
	}
}
