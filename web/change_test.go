package web_test

import (
	"net/url"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/resolve"
)

// fill submits a form of the page, as a browser with a session does.
func (s *harness) fill(t *testing.T, path string, values url.Values) answer {
	t.Helper()
	return s.do(request{
		method: "POST", path: path, anonymous: true, header: s.session(t),
		body: values.Encode(), contentType: "application/x-www-form-urlencoded",
	})
}

// TestOpenForm: the link beside an unknown machine opens a form with its MAC.
func TestOpenForm(t *testing.T) {
	s := newHarness(t)
	tests := []struct {
		query string
		want  []string
	}{
		{"?add=52:54:00:00:00:03", []string{`action="/add"`, `name="macs" value="52:54:00:00:00:03"`, "<option>compute</option>"}},
		{"?add=%3Cscript%3E", []string{`action="/add"`, `name="macs" value=""`}},
		{"?forget=52-54-00-00-00-03", []string{`action="/forget"`, "Forget 52:54:00:00:00:03", `name="macs" value="52:54:00:00:00:03"`}},
	}
	for _, tt := range tests {
		got := s.do(request{path: "/" + tt.query, anonymous: true, header: s.session(t)}).Body.String()
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: want %s in\n%s", tt.query, want, got)
			}
		}
		if strings.Contains(got, `http-equiv="refresh"`) || strings.Contains(got, `name="token"`) {
			t.Errorf("%s: the page refreshes while a form is open, or the form asks for a token", tt.query)
		}
	}
	if got := s.do(request{path: "/", anonymous: true, header: s.session(t)}).Body.String(); strings.Contains(got, `action="/add"`) {
		t.Error("a form is open without a link")
	}
}

func TestForms(t *testing.T) {
	n4 := func(set ...string) url.Values {
		v := url.Values{"name": {"n4"}, "pool": {"compute"}, "macs": {"52-54-00-00-00-77, 525400000078"}, "ip": {" 10.28.0.14 "}, "tags": {"debug gpu"}}
		for i := 0; i < len(set); i += 2 {
			v.Set(set[i], set[i+1])
		}
		return v
	}
	tests := []struct {
		name, path string
		values     url.Values
		code       int
		want       string // part of the page, or the target of the redirect
	}{
		{"add", "/add", n4(), 303, "/#machine-n4"},
		{"add what is declared", "/add", n4("name", "m1"), 409, "declared in drover.yaml:7"},
		{"add with mistakes", "/add", n4("ip", "10.28.0.256"), 400, "is not an IP address"},
		{"add without a name", "/add", n4("name", " "), 400, "the node has no name"},
		{"add to a pool that is not there", "/add", n4("pool", "x"), 400, "unknown pool"},
		{"what was typed is kept", "/add", n4("pool", "storage", "name", `"><u>`), 400, `<option selected>storage</option>`},
		{"forget", "/forget", url.Values{"macs": {"52:54:00:00:00:77"}}, 303, "/"},
		{"forget what is not there", "/forget", url.Values{"macs": {"52:54:00:00:00:79"}}, 404, "no unknown machine"},
		{"forget nothing", "/forget", url.Values{}, 400, "is not a MAC address"},
		{"too much", "/add", n4("tags", strings.Repeat("a ", 10<<10)), 400, "no form of the page"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := someUnknowns()
			s := newHarness(t, func(s *harness) { s.Unknowns = u })
			resp := s.fill(t, tt.path, tt.values)
			got := resp.Body.String()
			if resp.Code == 303 {
				got = resp.Header().Get("Location")
			}
			if resp.Code != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s\nwant %d with %s", resp.Code, got, tt.code, tt.want)
			}
			if changed := len(*u) != 2; changed != (tt.code == 303) {
				t.Errorf("%d are unknown after %d", len(*u), resp.Code)
			}
			if strings.Contains(resp.Body.String()+s.log.String(), secret) || strings.Contains(got, `"><u>`) {
				t.Error("the answer or the log contains the token, or HTML of the client")
			}
		})
	}
}

// TestFormsAreGuarded: a form without a session, with one that only reads, or from another
// site is an error.
func TestFormsAreGuarded(t *testing.T) {
	s := newHarness(t)
	values := url.Values{"name": {"n4"}, "pool": {"compute"}, "macs": {"52:54:00:00:00:77"}, "ip": {"10.28.0.14"}}
	post := request{method: "POST", path: "/add", anonymous: true, body: values.Encode(), contentType: "application/x-www-form-urlencoded"}
	if resp := s.do(post); resp.Code != 401 || !strings.Contains(resp.Body.String(), "The session is over.") {
		t.Errorf("no session: got %d", resp.Code)
	}
	post.header = s.session(t)
	post.header["Sec-Fetch-Site"] = "cross-site"
	if resp := s.do(post); resp.Code != 403 {
		t.Errorf("from another site: got %d", resp.Code)
	}
	viewer := s.sessionOf(t, s.token(t, pools.RoleViewer))
	post.header = viewer
	if resp := s.do(post); resp.Code != 403 || !strings.Contains(resp.Body.String(), "needs the role operator") {
		t.Errorf("a viewer: got %d", resp.Code)
	}
	if got := s.do(request{path: "/?add=52:54:00:00:00:03", anonymous: true, header: viewer}).Body.String(); strings.Contains(got, `action="/add"`) || strings.Contains(got, `href="/?power`) {
		t.Error("a viewer has forms")
	}
	if s.live.Farm().Resolve(resolve.Query{MAC: pools.MAC{0x52, 0x54, 0, 0, 0, 0x77}}).Node == "n4" {
		t.Error("the node was added")
	}
}
