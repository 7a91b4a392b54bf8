package api_test

import (
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/web/answer"
	"drover/web/api"
)

// n2 is the node of the API in these tests.
const n2 = api.NodesPath + "/n2"

// withNode returns a server with the node n2, and the ETag of that.
func withNode(t *testing.T) (s *server, etag string) {
	t.Helper()
	s = newServer(t)
	resp := s.do("POST", api.NodesPath, `{"pool": "compute", "name": "n2", "macs": ["02:00:00:00:00:02"], "ip": "10.28.0.14"}`)
	etag = resp.Header().Get("ETag")
	if resp.Code != 201 || len(etag) < 10 || etag[0] != '"' {
		t.Fatalf("got %d with the ETag %s: %s", resp.Code, etag, resp.Body)
	}
	s.calls, s.entries = nil, nil
	return s, etag
}

// with sends a request with lines of If-Match.
func (s *server) with(method, path, body string, ifMatch ...string) *httptest.ResponseRecorder {
	r := request(method, path, body)
	r.Header["If-Match"] = ifMatch
	return s.send(r)
}

// TestIfMatch: a request with If-Match is about the node that the client has read. A header that
// means nothing is refused, also for reading and for a try.
func TestIfMatch(t *testing.T) {
	s, etag := withNode(t)
	for _, tt := range []struct {
		ifMatch []string
		good    bool
		code    int
	}{
		{nil, true, 0},
		{[]string{etag}, true, 0},
		{[]string{"*"}, true, 0},
		{[]string{`"x", ` + etag}, true, 0},
		{[]string{`"x"`, etag}, true, 0}, // two lines are one list
		{[]string{` ` + etag + ` `}, true, 0},
		{[]string{`"x"`}, false, 412},
		{[]string{"W/" + etag}, false, 412}, // RFC 9110, section 13.1.1: a weak one never matches
		{[]string{`""`}, false, 412},
		{[]string{etag[:len(etag)-2] + `"`}, false, 412},
		{[]string{strings.ToUpper(etag)}, false, 412},
		{[]string{""}, false, 400},
		{[]string{"x"}, false, 400},
		{[]string{strings.Trim(etag, `"`)}, false, 400},
		{[]string{`"`}, false, 400},
		{[]string{"W/"}, false, 400},
		{[]string{","}, false, 400},
		{[]string{"* "}, false, 400},
		{[]string{`*, "x"`}, false, 400},
	} {
		for _, q := range []struct{ method, path, body string }{
			{"GET", n2, ""}, {"PATCH", n2 + "?dryRun=true", `{"tags": ["debug"]}`}, {"DELETE", n2 + "?dryRun=true", ""},
		} {
			resp := s.with(q.method, q.path, q.body, tt.ifMatch...)
			if good := resp.Code < 300; good != tt.good || !good && resp.Code != tt.code {
				t.Errorf("%s %s with %q: got %d %s", q.method, q.path, tt.ifMatch, resp.Code, resp.Body)
			}
			if resp.Code == 412 {
				fixture.WantText(t, "the answer", resp.Body.String(), `"code": "`+answer.CodeChanged+`"`, `"field": "If-Match"`)
			}
		}
	}
	if len(s.calls) > 0 || len(s.entries) > 0 {
		t.Errorf("it did %q", s.calls)
	}
}

// TestIfMatchChanges: a change is made only to the node that the client has read.
func TestIfMatchChanges(t *testing.T) {
	s, etag := withNode(t)
	for _, tt := range []struct {
		method, body string
		ifMatch      string
		code         int
	}{
		{"PATCH", `{"tags": ["debug"]}`, `"x"`, 412}, {"DELETE", "", `"x"`, 412}, {"PATCH", `{"tags": ["debug"]}`, "", 400}, {"DELETE", "", "x", 400},
	} {
		if resp := s.with(tt.method, n2, tt.body, tt.ifMatch); resp.Code != tt.code {
			t.Errorf("%s with %q: got %d", tt.method, tt.ifMatch, resp.Code)
		}
	}
	if len(s.calls) > 0 || len(s.entries) > 0 {
		t.Errorf("it did %q", s.calls)
	}
	if resp := s.with("PATCH", n2, `{"tags": ["debug"]}`, etag); resp.Code != 200 || resp.Header().Get("ETag") == etag {
		t.Errorf("a change: got %d with the ETag %s", resp.Code, resp.Header().Get("ETag"))
	}
	if resp := s.with("DELETE", n2, "", etag); resp.Code != 412 {
		t.Errorf("with the ETag of before: got %d", resp.Code)
	}
	for _, code := range []int{204, 404} {
		if resp := s.with("DELETE", n2, "", "*"); resp.Code != code {
			t.Errorf("whatever it is: got %d, want %d", resp.Code, code)
		}
	}
}

// TestIfMatchElsewhere: no route ignores an If-Match.
func TestIfMatchElsewhere(t *testing.T) {
	s := newServer(t)
	for _, r := range s.Routes() {
		if r.Conditional {
			continue
		}
		q := samples[r.Method+" "+r.Path]
		path := q.path
		if path == "" {
			path = strings.NewReplacer("{name}", "m1", "{cluster}", "tenant-a", "{id}", "j1").Replace(r.Path)
		}
		if resp := s.with(r.Method, path, q.body, `"x"`); resp.Code != 400 || !strings.Contains(resp.Body.String(), "If-Match") {
			t.Errorf("%s %s: got %d %s", r.Method, path, resp.Code, resp.Body)
		}
	}
	if len(s.calls) > 0 {
		t.Errorf("it did %q", s.calls)
	}
}

// TestChangedMeanwhile: a node that changes after it was compared is not removed. The status is
// that of the condition, if the client has sent one.
func TestChangedMeanwhile(t *testing.T) {
	s, etag := withNode(t)
	s.changing = pools.ErrChanged
	for _, tt := range []struct {
		ifMatch []string
		code    int
	}{
		{nil, 409}, {[]string{etag}, 412}, {[]string{"*"}, 412},
	} {
		resp := s.with("DELETE", n2, "", tt.ifMatch...)
		if resp.Code != tt.code || !strings.Contains(resp.Body.String(), answer.CodeChanged) {
			t.Errorf("with %q: got %d %s, want %d", tt.ifMatch, resp.Code, resp.Body, tt.code)
		}
	}
	s.changing = pools.ErrNotStored
	if resp := s.with("DELETE", n2, "", etag); resp.Code != 503 {
		t.Errorf("a disk that is full: got %d %s", resp.Code, resp.Body)
	}
	if _, ok := s.Farm.Farm().Node("n2"); !ok || len(s.entries) > 0 {
		t.Errorf("the node is there: %t, and the audit has %+v", ok, s.entries)
	}
}

// TestETag: an ETag changes with the node itself, and with nothing else: not with its status, and
// not with a password, of which it would confirm a guess.
func TestETag(t *testing.T) {
	s, first := withNode(t)
	etag := func(path string) string { return s.do("GET", path, "").Header().Get("ETag") }
	s.boots = []boots.Record{{ID: "a", Node: "n2", MAC: pools.MAC{2}, Pool: "compute", Started: epoch}}
	s.next["n2"] = pools.NextLocal
	if got := etag(n2); got != first {
		t.Errorf("with another status: got %s, want %s", got, first)
	}
	seen := []string{first}
	for _, patch := range []string{`{"tags": ["debug"]}`, `{"ip": "10.28.0.15"}`, `{"dhcpOptions": {"ntp-server": ["10.28.0.1"]}}`, `{"macs": ["02:00:00:00:00:04"]}`, `{"pool": "storage"}`, `{"ignore": true}`} {
		try := s.do("PATCH", n2+"?dryRun=true", patch).Header().Get("ETag")
		resp := s.do("PATCH", n2, patch)
		got := resp.Header().Get("ETag")
		if resp.Code != 200 || slices.Contains(seen, got) || got != etag(n2) || try != got {
			t.Errorf("%s: got %d with %s, tried %s, read %s, before %s", patch, resp.Code, got, try, etag(n2), seen)
		}
		seen = append(seen, got)
	}
	secret, ok := s.Farm.Farm().Node("m2")
	if !ok || secret.Power == nil {
		t.Fatal("m2 has no power")
	}
	viewer := request("GET", api.NodesPath+"/m2", "")
	viewer.Header.Set("Authorization", "Bearer "+s.as(t, pools.RoleViewer))
	resp := s.send(viewer)
	if resp.Header().Get("ETag") != etag(api.NodesPath+"/m2") {
		t.Error("the ETag depends on the client")
	}
	fixture.WantNoText(t, "what a viewer reads", resp.Body.String(), "hunter2")
	fixture.WantText(t, "what an admin reads", s.do("GET", api.NodesPath+"/m2", "").Body.String(), "hunter2")
	secret.Power.Options[1] = "another" // of the farm itself
	fixture.WantText(t, "what an admin reads then", s.do("GET", api.NodesPath+"/m2", "").Body.String(), `"another"`)
	if got := etag(api.NodesPath + "/m2"); got != resp.Header().Get("ETag") {
		t.Error("the ETag depends on the password")
	}
}

// records returns a boot of each node, the newest first.
func records(nodes ...string) (all []boots.Record) {
	for i, name := range nodes {
		all = append(all, boots.Record{ID: string(rune('z' - i)), Node: name, MAC: pools.MAC{2}, Pool: "compute", Started: epoch})
	}
	return all
}

// TestStrangers: boots of machines that no node declares, which anyone can begin, do not hide the
// others. Where there are no others, they are shown.
func TestStrangers(t *testing.T) {
	for _, tt := range []struct{ all, limit, want string }{
		{"ABCDEFGHab", "4", "ABab"},
		{"aABCb", "4", "aABb"},
		{"ABCDEFGH", "4", "ABCD"},
		{"abcdAB", "4", "abcd"},
		{"ABCDa", "1000", "ABCDa"},
		{"ABCa", "1", "A"},
		{"", "4", ""},
	} {
		s := newServer(t)
		for i, c := range tt.all { // upper case: unknown
			s.boots = append(s.boots, boots.Record{ID: string(rune('z' - i)), Node: string(c), Unknown: c < 'a', MAC: pools.MAC{2}})
		}
		var got []boots.Record
		decode(t, s.do("GET", "/api/v1/boots?limit="+tt.limit, ""), &got)
		text := ""
		for _, b := range got {
			text += b.Node
		}
		if text != tt.want {
			t.Errorf("%s with the limit %s: got %s, want %s", tt.all, tt.limit, text, tt.want)
		}
	}
}

// TestFreeAddresses: a free address is in the subnet, and neither a node nor a lease has it.
func TestFreeAddresses(t *testing.T) {
	s := newServer(t)
	var got []netip.Addr
	decode(t, s.do("GET", "/api/v1/addresses?limit=1000", ""), &got)
	taken := []string{"10.28.0.0", "10.28.0.1", "10.28.0.2", "10.28.0.11", "10.28.0.12", addr.String()}
	for _, a := range got {
		if slices.Contains(taken, a.String()) || !netip.MustParsePrefix("10.28.0.0/16").Contains(a) {
			t.Errorf("%s is not free", a)
		}
	}
	if len(got) != 1000 {
		t.Errorf("got %d", len(got))
	}
	for _, query := range []string{"link=", "link=x", "link=10.99.0.1", "link=::1", "link=10.28.0.0/16", "limit=1001", "limit=-1"} {
		if resp := s.do("GET", "/api/v1/addresses?"+query, ""); (resp.Code != 400) != (query == "link=") {
			t.Errorf("%s: got %d %s", query, resp.Code, resp.Body)
		}
	}
}
