package web_test

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

// TestPageStream: the stream of a page tells when the page is another one, to a viewer too, and
// nothing else.
func TestPageStream(t *testing.T) {
	s := listen(t, false)
	token := s.token(t, pools.RoleViewer)
	header := s.login(token)
	resp, r := s.stream("/nodes?sort=-name", header)
	page, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	tag := resp.Header.Get("ETag")
	fixture.WantText(t, "the page", string(page), `hx-sse:connect="/events/nodes?sort=-name"`, `hx-headers='{"If-None-Match": "\`+strings.TrimSuffix(tag, `"`)+`\""}'`)
	header["If-None-Match"] = tag
	stream, r := s.stream("/events/nodes?sort=-name", header)
	if kind := stream.Header.Get("Content-Type"); stream.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("got %d %s", stream.StatusCode, kind)
	}
	all := &strings.Builder{}
	r = bufio.NewReader(io.TeeReader(r, all))
	until(t, r, "event: alive", "changed")
	n3 := pools.PoolNode{Pool: "compute", Node: pools.Node{Name: "n3", MACs: []pools.MAC{{0x52, 0x54, 0, 0, 0, 3}}, IP: netip.MustParseAddr("10.28.0.13")}}
	if err := s.live.AddNode(n3); err != nil {
		t.Fatal(err)
	}
	until(t, r, "event: changed", "")
	if resp, _ = s.stream("/nodes?sort=-name", header); resp.StatusCode != 200 || resp.Header.Get("ETag") == tag {
		t.Errorf("the page after the event: got %d, ETag %s", resp.StatusCode, resp.Header.Get("ETag"))
	}
	header["If-None-Match"], header["Last-Event-ID"] = tag, resp.Header.Get("ETag")
	_, again := s.stream("/events/nodes?sort=-name", header)
	until(t, again, "event: alive", "changed")
	if err := s.Named.Revoke(s.Named.List()[0].Name); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*bufio.Reader{r, again} { // so that the page asks, and gets the login
		until(t, r, "event: changed", "")
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("the stream does not end well: %v", err)
		}
	}
	if !regexp.MustCompile(`^(retry: \d+\n|id: ("[0-9a-f]{16}")?\n|event: (alive|changed)\n|data: \n|\n)*$`).MatchString(all.String()) {
		t.Errorf("the stream has more than it needs:\n%s", all)
	}
}

// TestPageStreamOfWhom: streams are for sessions, and for views.
func TestPageStreamOfWhom(t *testing.T) {
	s := listen(t, false)
	session := s.login(secret)
	for _, tt := range []struct {
		path   string
		header map[string]string
		code   int
	}{
		{"/events/nodes", nil, 401},
		{"/events/nodes", bearer(secret), 401},
		{"/events/nodes", map[string]string{"Cookie": "drover=x"}, 401},
		{"/events/", session, 200},
		{"/events/nodes/m1", session, 200},
		{"/events/nodes/nobody", session, 200},
		{"/events/change", session, 404},
		{"/events/login", session, 404},
		{"/events/events/nodes", session, 404},
	} {
		resp, _ := s.stream(tt.path, tt.header)
		_ = resp.Body.Close()
		if resp.StatusCode != tt.code {
			t.Errorf("%s with %d headers: got %d, want %d", tt.path, len(tt.header), resp.StatusCode, tt.code)
		}
	}
}

// TestManyPageStreams: a browser has some streams, and room for the rest; so have a token with
// all of its sessions, and all together.
func TestManyPageStreams(t *testing.T) {
	s := listen(t, false)
	var first *http.Response
	refused := func(what string, session map[string]string) {
		t.Helper()
		resp, r := s.stream("/events/audit", session)
		if resp.StatusCode != 503 {
			t.Fatalf("%s: got %d", what, resp.StatusCode)
		}
		until(t, r, `"code": "too-many-watchers"`, "")
	}
	for _, share := range []int{224, 32} { // of a token, and what is left
		token := s.token(t, pools.RoleViewer)
		for n := 0; n < share; n += 4 {
			session := s.login(token)
			for range 4 {
				resp, _ := s.stream("/events/audit", session)
				if resp.StatusCode != 200 {
					t.Fatalf("stream %d: got %d", n, resp.StatusCode)
				}
				first = cmp.Or(first, resp)
			}
			if n == 0 {
				refused("the fifth of a session", session)
			}
		}
		refused("more than the share of a token", s.login(token))
	}
	session := s.login(secret)
	if resp, _ := s.stream("/events/audit", session); resp.StatusCode != 503 {
		t.Errorf("one more than all: got %d", resp.StatusCode)
	}
	if resp, _ := s.stream("/audit", session); resp.StatusCode != 200 {
		t.Errorf("the page beside them: got %d", resp.StatusCode)
	}
	if resp, _ := s.stream("/api/v1/nodes?watch=true", bearer(secret)); resp.StatusCode != 200 {
		t.Errorf("a watch of the API beside them: got %d", resp.StatusCode)
	}
	_ = first.Body.Close()
	fixture.Eventually(t, "a place is free again", func() bool {
		resp, _ := s.stream("/events/audit", session)
		return resp.StatusCode == 200
	})
}

// TestPageStreamAtTheEnd: open pages do not keep a server from its end.
func TestPageStreamAtTheEnd(t *testing.T) {
	s := listen(t, false)
	_, r := s.stream("/events/nodes/m1", s.login(secret))
	until(t, r, "event: alive", "")
	s.stop()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("it is cut off, and does not end: %v", err)
	}
}

// TestStreamWithoutSession: the stream of a page whose session is over tells it to ask, and ends.
func TestStreamWithoutSession(t *testing.T) {
	s := listen(t, false)
	resp, r := s.stream("/events/nodes", map[string]string{"HX-Request": "true"})
	all, err := io.ReadAll(r)
	if want := "retry: 2000\n\nid: \nevent: changed\ndata: \n\n"; resp.StatusCode != 200 || err != nil || string(all) != want {
		t.Errorf("got %d, %v and %q, want %q", resp.StatusCode, err, all, want)
	}
}

// TestRefreshWithoutSession: a page whose session is over is loaded again, and is the login then.
func TestRefreshWithoutSession(t *testing.T) {
	s := newHarness(t)
	for _, header := range []map[string]string{{}, s.session(t)} {
		over := len(header) == 0
		header = maps.Clone(header)
		header["HX-Request"] = "true"
		resp := s.do(request{path: "/nodes", anonymous: true, header: header})
		if got := resp.Header().Get("HX-Refresh") == "true" && resp.Body.Len() == 0; resp.Code != 200 || got != over {
			t.Errorf("the session is over: %t; got %d %v", over, resp.Code, resp.Header())
		}
	}
}
