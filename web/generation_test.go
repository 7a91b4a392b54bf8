package web_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
)

// TestOutdated: a node is outdated if it has booted another generation than its pool boots now,
// and only if both are known.
func TestOutdated(t *testing.T) {
	current := map[string]string{"compute": newer}
	s := newHarness(t, func(s *harness) {
		boot := func(node string, mac byte, generation string) boots.Record {
			r := timeline(node, mac, false, epoch.Add(-time.Duration(mac)*time.Minute), boots.StepDiscover, boots.StepReady)
			r.Generation = generation
			return r
		}
		s.Boots = bootList{boot("m1", 1, newer), boot("m2", 2, older)}
		s.Generations = func() map[string]string { return current }
	})
	list := func(query string) string {
		t.Helper()
		var nodes []pools.NodeInfo
		body := s.do(request{path: "/api/v1/nodes" + query}).Body.Bytes()
		if err := json.Unmarshal(body, &nodes); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		var words []string
		for _, n := range nodes {
			words = append(words, n.Name+" "+pools.ShortID(n.Status.Generation))
		}
		return strings.Join(words, ", ")
	}
	if got, want := list("?image.outdated=true"), "m2 bbbbbbbbbbbb"; got != want {
		t.Errorf("outdated: got %q, want %q", got, want)
	}
	if got, want := list("?image.outdated=false"), "m1 aaaaaaaaaaaa"; got != want {
		t.Errorf("not outdated: got %q, want %q", got, want)
	}
	if got, want := list("?image.generation="+older), "m2 bbbbbbbbbbbb"; got != want {
		t.Errorf("of a generation: got %q, want %q", got, want)
	}
	if got := s.do(request{path: "/api/v1/status"}).Body.String(); !strings.Contains(compact(got), `"outdated":1`) {
		t.Errorf("status: got %s", got)
	}
	if got := s.do(request{path: "/api/v1/boots?generation=" + newer}).Body.String(); strings.Count(got, `"node"`) != 1 {
		t.Errorf("boots of a generation: got %s", got)
	}
	current = nil // the folder of images cannot be read
	if got := list("?image.outdated=true"); got != "" {
		t.Errorf("without a folder of images: got %q, want none", got)
	}
}
