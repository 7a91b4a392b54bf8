package web_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"drover/pools"
)

// names returns the names of the nodes in an answer, and the address of the next page.
func names(t *testing.T, resp answer) (all []string, next string) {
	t.Helper()
	if resp.Code != 200 {
		t.Errorf("got %d %s", resp.Code, resp.Body)
	}
	var nodes []pools.NodeInfo
	decodeJSON(t, resp, &nodes)
	for _, n := range nodes {
		all = append(all, n.Name)
	}
	if link := resp.Header().Get("Link"); link != "" {
		next = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	}
	return all, next
}

func nodesOf(t *testing.T, s *harness, n int) {
	t.Helper()
	var add []pools.NodeChange
	for i := range n {
		node := pools.PoolNode{Pool: "storage", Node: pools.Node{Name: fmt.Sprintf("x%d", i), MACs: []pools.MAC{{2, 0, 0, 0, 0, byte(i)}}, IP: netip.AddrFrom4([4]byte{10, 28, 1, byte(i + 1)})}}
		if i%2 > 0 {
			node.Tags = []string{"gpu"}
		}
		add = append(add, pools.NodeChange{New: &node})
	}
	s.batch(t, add)
}

// TestLists: lists are filtered, sorted in the order of numbers, and come in pages.
func TestLists(t *testing.T) {
	s := newHarness(t)
	nodesOf(t, s, 12)
	for query, want := range map[string]string{
		"?pool=compute":                         "m1 m2",
		"?pool=compute,storage&tag=gpu&limit=3": "m2 x1 x3",
		"?sort=-name&limit=3":                   "x11 x10 x9",
		"?sort=pool&limit=4":                    "m1 m2 x0 x1",
		"?sort=-tag&limit=2":                    "x11 x9",
		"?state=ready":                          "",
		"?mac=02:00:00:00:00:07":                "x7",
		"?name=x10,m1":                          "m1 x10",
		"?address=10.28.0.11":                   "m1",
	} {
		got, _ := names(t, s.do(request{path: "/api/v1/nodes" + query}))
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"?limit=0", "?sort=nme", "?limit=x", "?cursor=x", "?limit=2&cursor=bm8", "?cursor=eyJzIjoieCJ9"} {
		if resp := s.do(request{path: "/api/v1/nodes" + query}); resp.Code != 400 || !strings.Contains(resp.Body.String(), `"code": "bad-parameter"`) {
			t.Errorf("%s: got %d %s", query, resp.Code, resp.Body)
		}
	}
}

// TestPages: pages neither repeat nor lose an element when others come and go.
func TestPages(t *testing.T) {
	for _, sort := range []string{"name", "-name", "pool", "-tag", "state", "since"} {
		t.Run(sort, func(t *testing.T) {
			s := newHarness(t)
			nodesOf(t, s, 23)
			want, _ := names(t, s.do(request{path: "/api/v1/nodes?sort=" + sort}))
			var got []string
			for path := "/api/v1/nodes?limit=4&sort=" + sort; path != ""; {
				var page []string
				page, path = names(t, s.do(request{path: path}))
				if len(got) == 4 { // what was on the first page goes
					for _, name := range got {
						s.do(request{method: "DELETE", path: "/api/v1/nodes/" + name})
					}
				}
				got = append(got, page...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}

// TestPagesOfEqual: elements that no column tells apart are in exactly one page each.
func TestPagesOfEqual(t *testing.T) {
	m, s := managed(t)
	for i := range 7 {
		m.audit = append(m.audit, pools.AuditEntry{Time: epoch, Actor: "x", Action: fmt.Sprintf("a%d", i), Result: "done"})
	}
	var got []string
	for path := "/api/v1/audit?limit=3"; path != ""; {
		resp := s.do(request{path: path})
		var entries []pools.AuditEntry
		decodeJSON(t, resp, &entries)
		for _, e := range entries {
			got = append(got, e.Action)
		}
		_, path = names(t, resp)
	}
	if want := "a0 a1 a2 a3 a4 a5 a6"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
