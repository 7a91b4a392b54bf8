package web_test

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"drover/pools"
)

// nextBoots is a table of next boots in memory.
type nextBoots struct {
	next  map[string]pools.NextBoot
	err   error
	calls int // of Set
}

func (o *nextBoots) Pending(node string) pools.NextBoot { return o.next[node] }

func (o *nextBoots) Set(next pools.NextBoot, nodes ...string) error {
	if o.err != nil {
		return o.err
	}
	o.calls++
	for _, node := range nodes {
		o.next[node] = next
	}
	return nil
}

func TestNextBoot(t *testing.T) {
	o := &nextBoots{next: map[string]pools.NextBoot{}}
	s := newHarness(t, func(s *harness) {
		s.NextBoots = o
		s.CheckImage = func(ref string) error {
			if ref == "debian-12" {
				return nil
			}
			return errors.New("there is no image " + ref)
		}
	})
	const path = "/api/v1/nodes/m1/next-boot"
	put := func(body string) answer { return s.do(request{method: "PUT", path: path, body: body}) }
	for _, what := range []string{"local", "rescue", "image=debian-12"} {
		a := put(`{"nextBoot": "` + what + `"}`)
		if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), `"nextBoot": "`+what+`"`) || string(o.next["m1"]) != what {
			t.Errorf("%s: got %d %s, and %q is set", what, a.Code, a.Body, o.next["m1"])
		}
	}
	for _, get := range []string{"/api/v1/nodes/m1", "/api/v1/nodes"} {
		if a := s.do(request{path: get}); strings.Count(a.Body.String(), `"nextBoot": "image=debian-12"`) != 1 {
			t.Errorf("%s: got %s", get, a.Body)
		}
	}
	if page := s.browse(t, "/nodes"); strings.Count(page, "next boot: image=debian-12") != 1 {
		t.Errorf("the page does not show the next boot:\n%s", page)
	}

	before := maps.Clone(o.next)
	for _, tt := range []struct {
		request
		status int
		want   string
	}{
		{request{path: path, body: `{"nextBoot": "disk"}`}, 400, `\"disk\" is not a next boot`},
		{request{path: path, body: `{"nextBoot": "image=debian-13"}`}, 400, "there is no image debian-13"},
		{request{path: path, body: `{"nextBoot": ""}`}, 400, "is not a next boot"},
		{request{path: path, body: `{"nextBoot": 1}`}, 400, "want a string"},
		{request{path: path, body: `{"nextBoot": "local", "image": "x"}`}, 400, `unknown key \"image\"`},
		{request{path: path, body: `[]`}, 400, "the body is not an object"},
		{request{path: path, body: `{`}, 400, "not JSON"},
		{request{path: "/api/v1/nodes/m7/next-boot", body: `{"nextBoot": "local"}`}, 404, "no such node"},
		{request{path: path, body: `{"nextBoot": "local"}`, anonymous: true}, 401, ""},
	} {
		tt.method = "PUT"
		if a := s.do(tt.request); a.Code != tt.status || !strings.Contains(a.Body.String(), tt.want) {
			t.Errorf("%s: got %d %s, want %d %s", tt.body, a.Code, a.Body, tt.status, tt.want)
		}
	}
	if !maps.Equal(o.next, before) {
		t.Errorf("refused requests changed %v to %v", before, o.next)
	}

	if a := s.do(request{method: "DELETE", path: "/api/v1/nodes/m7/next-boot"}); a.Code != http.StatusNotFound {
		t.Errorf("DELETE of a node that is not there: got %d", a.Code)
	}
	if a := s.do(request{method: "DELETE", path: path}); a.Code != http.StatusNoContent || o.next["m1"] != "" {
		t.Errorf("DELETE: got %d, and %q is set", a.Code, o.next["m1"])
	}
	o.err = errors.New("disk full")
	if a := put(`{"nextBoot": "local"}`); a.Code != http.StatusInternalServerError {
		t.Errorf("a store that fails: got %d", a.Code)
	}
}
