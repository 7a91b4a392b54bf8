package web_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"drover/pools"
)

// TestGzip: lists, the page and the document are compressed for clients that take it; small
// answers, errors, secrets and changes are not.
func TestGzip(t *testing.T) {
	s := newHarness(t)
	nodesOf(t, s, 50)
	gz := "br, gzip;q=0.5"
	for _, tt := range []struct {
		request
		accept string
		zipped bool
	}{
		{request{path: "/api/v1/nodes"}, gz, true},
		{request{path: "/api/v1/nodes"}, "*", true},
		{request{path: "/api/v1/nodes"}, "", false},
		{request{path: "/api/v1/nodes"}, "gzip;q=0, *", false},
		{request{path: "/api/v1/nodes"}, "gzip;q=x", false},
		{request{path: "/api/v1/nodes"}, "br", false},
		{request{path: "/api/v1/version"}, gz, false},
		{request{path: "/api/v1/nodes/x1"}, gz, false},
		{request{path: "/api/v1/nodes?sort=x"}, gz, false},
		{request{path: "/api/v1/config"}, gz, false},
		{request{path: "/api/v1/plan?node=x1"}, gz, false}, // it may have secrets
		{request{path: "/api/v1/nodes", method: "HEAD"}, gz, false},
		{request{path: "/api/v1/nodes", method: "POST", body: n3}, gz, false},
		{request{path: "/api/v1/tokens", method: "POST", body: `{"name": "` + strings.Repeat("a", 60) + `", "role": "viewer"}`}, gz, false},
		{request{path: "/openapi.json", anonymous: true}, gz, true},
		{request{path: "/openapi", anonymous: true}, gz, true},
		{request{path: "/style.css", anonymous: true}, gz, false}, // the browser keeps it
	} {
		tt.header = map[string]string{"Accept-Encoding": tt.accept}
		resp, _ := s.send(tt.request)
		tt.header = nil
		body := resp.Body.Bytes()
		if got := resp.Header().Get("Content-Encoding") == "gzip"; got != tt.zipped {
			t.Errorf("%s %s with %q: compressed %t", tt.method, tt.path, tt.accept, got)
		}
		if !tt.zipped {
			continue
		}
		in, err := gzip.NewReader(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		plain, _ := s.send(tt.request)
		if want := plain.Body.String(); err != nil || string(text) != want || len(body) >= len(text) || resp.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %d bytes are %d, want %d: %v", tt.path, len(body), len(text), len(want), err)
		}
	}
	var nodes []pools.NodeInfo
	if err := json.Unmarshal(s.do(request{path: "/api/v1/nodes"}).Body.Bytes(), &nodes); err != nil || len(nodes) != 53 {
		t.Errorf("%d nodes, %v", len(nodes), err)
	}
}
