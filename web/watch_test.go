package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/client"
)

// api returns a client with a token.
func (s *listening) api(token string) *client.Client {
	return &client.Client{Base: s.scheme + "://" + s.addr, Token: token, HTTP: s.client}
}

// event returns the next event of a watch in short: "list m1 m2", "added n3".
func event(t *testing.T, next func() (client.Event[pools.NodeInfo], error, bool)) string {
	t.Helper()
	e, err, ok := next()
	if err != nil || !ok {
		t.Fatalf("the watch has ended: %v, %v", err, ok)
	}
	words := []string{e.Kind}
	if e.Kind != "list" {
		return e.Kind + " " + e.Element.Name
	}
	for _, n := range e.List {
		words = append(words, n.Name)
	}
	return strings.Join(words, " ")
}

// TestWatch: a viewer sees the nodes of a pool, and then each change of them.
func TestWatch(t *testing.T) {
	s := listen(t, true)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	admin, viewer := s.api(secret), s.api(s.token(t, pools.RoleViewer))
	next, stop := iter.Pull2(client.Watch(ctx, viewer, client.Nodes, url.Values{"pool": {"compute"}}))
	defer stop()
	if got := event(t, next); got != "list m1 m2" {
		t.Fatalf("got %q", got)
	}
	n3 := pools.PoolNode{Pool: "compute", Node: pools.Node{Name: "n3", MACs: []pools.MAC{{0x52, 0x54, 0, 0, 0, 3}}}}
	n3.IP = s.live.Farm().Nodes()[0].IP.Next().Next()
	patch := func(p client.Patch) func() error {
		return func() error {
			_, err := client.Send(ctx, admin, client.PatchNode, p, "n3")
			return err
		}
	}
	for _, step := range []struct {
		change func() error
		want   string
	}{
		{func() error { _, err := client.Send(ctx, admin, client.AddNode, n3); return err }, "added n3"},
		{patch(client.Patch{"tags": []string{"gpu"}}), "changed n3"},
		{patch(client.Patch{"pool": "storage"}), "removed n3"},
		{patch(client.Patch{"pool": "compute"}), "added n3"},
		{func() error { _, err := client.Send(ctx, admin, client.RemoveNode, client.None{}, "n3"); return err }, "removed n3"},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if got := event(t, next); got != step.want {
			t.Fatalf("got %q, want %q", got, step.want)
		}
	}
}

// stream requests a watch, and returns the answer. Its body is read line by line.
func (s *listening) stream(path string, header map[string]string) (*http.Response, *bufio.Reader) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.scheme+"://"+s.addr+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp, bufio.NewReader(resp.Body)
}

// login begins a session on the server that listens.
func (s *listening) login(token string) map[string]string {
	s.t.Helper()
	browser := *s.client
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := browser.PostForm(s.scheme+"://"+s.addr+"/login", url.Values{"token": {token}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if len(resp.Cookies()) != 1 {
		s.t.Fatalf("login: got %s", resp.Status)
	}
	return map[string]string{"Cookie": resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value}
}

// until reads a stream up to a line with a text, and returns that line. It fails when a line
// has the text but.
func until(t *testing.T, r *bufio.Reader, text, but string) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		switch {
		case err != nil:
			t.Fatalf("no %q: %v", text, err)
		case but != "" && strings.Contains(line, but):
			t.Fatalf("got %q before %q", line, text)
		case strings.Contains(line, text):
			return strings.TrimSpace(line)
		}
	}
}

// TestWatchResumes: a client that comes back gets what has changed since, and the whole list if
// the server does not know where it was.
func TestWatchResumes(t *testing.T) {
	s := listen(t, false)
	const path = "/api/v1/nodes?watch=true"
	resp, r := s.stream(path, bearer(secret))
	id := strings.TrimPrefix(until(t, r, "id: ", ""), "id: ")
	until(t, r, "event: list", "")
	_ = resp.Body.Close()
	s.do(request{method: "POST", path: "/api/v1/nodes", body: n3})
	header := bearer(secret)
	header["Last-Event-ID"] = id
	_, r = s.stream(path, header)
	until(t, r, "event: added", "event: list")
	until(t, r, `data: {"pool":"compute","name":"n3"`, "event: list")
	for _, id := range []string{"x", "x-1", strings.Replace(id, "-", "-9", 1), "-", "-1"} {
		header["Last-Event-ID"] = id
		_, r = s.stream(path, header)
		until(t, r, "event: list", "event: added")
	}
}

// TestWatchOfLists: all lists that can be watched begin with what they have, and refuse what is
// for pages.
func TestWatchOfLists(t *testing.T) {
	s := listen(t, false, func(s *harness) {
		s.Leases, s.Unknowns, s.Boots = someLeases(), someUnknowns(), bootList{boot(1, "m1", "tenant-a", 6, time.Minute, "")}
	})
	for path, want := range map[string]string{
		"/api/v1/leases?state=declined":     `"address":"10.28.72.13"`,
		"/api/v1/unknown?pool=catchall":     `"mac":"52:54:00:00:00:77"`,
		"/api/v1/boots?node=m1":             `"node":"m1"`,
		"/api/v1/nodes?catchall=true":       `"name":"m1"`,
		"/api/v1/nodes?tag=gpu&state=ready": "data: ]",
	} {
		resp, r := s.stream(path+"&watch=true", bearer(secret))
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
			t.Fatalf("%s: got %d %s", path, resp.StatusCode, got)
		}
		until(t, r, want, "event: added")
	}
	for _, query := range []string{"limit=3", "sort=name", "watch=yes"} {
		if resp, _ := s.stream("/api/v1/nodes?watch=true&"+query, bearer(secret)); resp.StatusCode != 400 {
			t.Errorf("%s: got %d", query, resp.StatusCode)
		}
	}
	if resp := s.do(request{method: "HEAD", path: "/api/v1/nodes?watch=true"}); resp.Code != 200 {
		t.Errorf("HEAD: got %d", resp.Code)
	}
	if resp := s.do(request{path: "/api/v1/pools?watch=true"}); resp.Code != 400 {
		t.Errorf("a list that cannot be watched: got %d", resp.Code)
	}
}

// TestWatchEndsWithItsToken: the session of a browser watches, too; both end when their token
// is revoked, and are told.
func TestWatchEndsWithItsToken(t *testing.T) {
	s := listen(t, false)
	token := s.token(t, pools.RoleViewer)
	name := s.Named.List()[0].Name
	var streams []*bufio.Reader
	for _, header := range []map[string]string{bearer(token), s.login(token)} {
		_, r := s.stream("/api/v1/nodes?watch=true", header)
		until(t, r, "event: list", "")
		streams = append(streams, r)
	}
	if err := s.Named.Revoke(name); err != nil {
		t.Fatal(err)
	}
	for _, r := range streams {
		until(t, r, "event: end", "")
		until(t, r, `"code":"no-token"`, "")
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("the stream does not end well: %v", err)
		}
	}
	if resp, _ := s.stream("/api/v1/nodes?watch=true", bearer(token)); resp.StatusCode != 401 {
		t.Errorf("got %d", resp.StatusCode)
	}
}

// TestManyWatchers: there is room for a number of watches, of which a token has its share, and
// for lists beside them.
func TestManyWatchers(t *testing.T) {
	s := listen(t, false)
	var all []*http.Response
	for _, share := range []int{48, 16} { // of a token, and what is left
		viewer := bearer(s.token(t, pools.RoleViewer))
		for range share {
			resp, _ := s.stream("/api/v1/leases?watch=true", viewer)
			if resp.StatusCode != 200 {
				t.Fatalf("watch %d: got %d", len(all), resp.StatusCode)
			}
			all = append(all, resp)
		}
		if resp, _ := s.stream("/api/v1/nodes?watch=true", viewer); resp.StatusCode != 503 {
			t.Errorf("more than its share: got %d", resp.StatusCode)
		}
		if len(all) == 64 {
			break
		}
		resp, _ := s.stream("/api/v1/nodes?watch=true", bearer(secret))
		if resp.StatusCode != 200 {
			t.Errorf("another token: got %d", resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
	resp, r := s.stream("/api/v1/nodes?watch=true", bearer(secret))
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one more: got %d", resp.StatusCode)
	}
	until(t, r, `"code": "too-many-watchers"`, "")
	if err := s.get("/api/v1/nodes", secret); err != nil {
		t.Error(err)
	}
	_ = all[7].Body.Close()
	fixture.Eventually(t, "a place is free again", func() bool {
		resp, _ := s.stream("/api/v1/nodes?watch=true", bearer(secret))
		return resp.StatusCode == 200
	})
}

// TestWatchAtTheEnd: watches do not keep a server from its end, and are told.
func TestWatchAtTheEnd(t *testing.T) {
	s := listen(t, false)
	next, stop := iter.Pull2(client.Watch(t.Context(), s.api(secret), client.Leases, nil))
	defer stop()
	if _, err, _ := next(); err != nil {
		t.Fatal(err)
	}
	s.stop()
	_, err, ok := next()
	var e *client.Error
	if !ok || !errors.As(err, &e) || e.Status != 503 || e.Problem.Detail != "the server ends" {
		t.Errorf("got %v, %t", err, ok)
	}
	if _, err, ok = next(); !ok || err == nil || fmt.Sprintf("%T", err) != "*client.UnreachableError" {
		t.Errorf("from a server that is gone: %v, %t", err, ok)
	}
}
