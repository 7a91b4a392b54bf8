package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"drover/pools"
)

// decodeJSON decodes a good answer.
func decodeJSON(t *testing.T, resp answer, v any) {
	t.Helper()
	if resp.Code >= 300 {
		return
	}
	if err := json.Unmarshal(resp.Body.Bytes(), v); err != nil {
		t.Errorf("%v in %s", err, resp.Body)
	}
}

// TestIfMatch: a change is made only to the node that the client has read.
func TestIfMatch(t *testing.T) {
	s := newHarness(t)
	const n = "/api/v1/nodes/n3"
	first := s.do(request{method: "POST", path: "/api/v1/nodes", body: n3}).Header().Get("ETag")
	second := s.do(request{method: "PATCH", path: n, body: `{"tags": ["gpu"]}`, header: map[string]string{"If-Match": first}}).Header().Get("ETag")
	if first == "" || second == "" || first == second {
		t.Fatalf("ETags %s, then %s", first, second)
	}
	for _, tt := range []struct {
		method, path, header string
		code                 int
	}{
		{"PATCH", n, first, 412},
		{"PATCH", n, "W/" + second, 412},
		{"PATCH", n, "gpu", 400},
		{"PATCH", n, "", 400},
		{"DELETE", n, "", 400},
		{"GET", "/api/v1/nodes", "", 400},
		{"PATCH", n + "?dryRun=true", first, 412},
		{"PATCH", n + "?dryRun=true", second, 200},
		{"DELETE", n, first, 412},
		{"DELETE", n + "?dryRun=true", first, 412},
		{"GET", n, first, 412},
		{"GET", n, second, 200},
		{"GET", "/api/v1/nodes", second, 400},
		{"PATCH", "/api/v1/nodes/m1", second, 409}, // the file declares it
		{"PATCH", n, `"x", ` + second, 200},
		{"PATCH", n, "*", 200},
		{"DELETE", n, second, 204},
		{"DELETE", n, "*", 404},
	} {
		q := request{method: tt.method, path: tt.path, header: map[string]string{"If-Match": tt.header}}
		if tt.method == "PATCH" {
			q.body = `{"tags": ["gpu"]}`
		}
		resp := s.do(q)
		if resp.Code != tt.code {
			t.Errorf("%s %s with %s: got %d, want %d: %s", tt.method, tt.path, tt.header, resp.Code, tt.code, resp.Body)
		}
	}
}

// The size of TestNoLostUpdate.
const (
	manyNodes = 5000
	clients   = 50
	contended = 10 // nodes that all clients change
	perClient = 3  // changes of contended nodes by each client
)

// TestNoLostUpdate: 50 clients change 5 000 nodes at once. Each changes 100 of its own in one
// batch, and notes itself in nodes that the others change too, with If-Match. No change is
// lost.
func TestNoLostUpdate(t *testing.T) {
	s := newHarness(t)
	node := func(i int) pools.PoolNode {
		var n pools.PoolNode
		text := fmt.Sprintf(`{"pool": "compute", "name": "x%d", "macs": ["02:00:00:00:%02x:%02x"], "ip": "10.28.%d.%d"}`, i, i>>8, i&0xff, 100+(i>>8), i&0xff)
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var add []pools.NodeChange
	for i := range manyNodes {
		n := node(i)
		add = append(add, pools.NodeChange{New: &n})
	}
	s.batch(t, add)
	var wait sync.WaitGroup
	for c := range clients {
		wait.Go(func() {
			var changes []pools.NodeChange
			for i := c * manyNodes / clients; i < (c+1)*manyNodes/clients; i++ {
				if i < contended {
					continue
				}
				from, to := node(i), node(i)
				to.Pool = "storage"
				changes = append(changes, pools.NodeChange{Old: &from, New: &to})
			}
			s.batch(t, changes)
			for k := range perClient {
				s.note(t, fmt.Sprintf("x%d", (c+k)%contended), fmt.Sprintf("10.1.%d.%d", c, k+1))
			}
		})
	}
	wait.Wait()
	moved, noted := 0, 0
	for _, n := range s.live.Farm().Nodes() {
		if n.Pool == "storage" {
			moved++
		}
		noted += len(n.DHCPOptions["ntp-server"])
		if stored, ok := s.store.nodes[n.Name]; ok && (stored.Pool != n.Pool || len(stored.DHCPOptions["ntp-server"]) != len(n.DHCPOptions["ntp-server"])) {
			t.Errorf("%s is stored as %+v", n.Name, stored)
		}
	}
	if moved != manyNodes-contended || noted != clients*perClient {
		t.Errorf("of %d nodes %d have moved, and of %d notes %d are there", manyNodes-contended, moved, clients*perClient, noted)
	}
}

// batch makes changes in one step.
func (s *harness) batch(t *testing.T, changes []pools.NodeChange) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"changes": changes})
	if err != nil {
		t.Error(err)
		return
	}
	if resp := s.do(request{method: "POST", path: "/api/v1/nodes:batch", body: string(body)}); resp.Code != 200 {
		t.Errorf("got %d %.300s", resp.Code, resp.Body)
	}
}

// note adds an address to a list of a node, as a client that reads, changes and writes it, and
// begins again if another one was faster.
func (s *harness) note(t *testing.T, name, address string) {
	for {
		path := "/api/v1/nodes/" + name
		resp := s.do(request{path: path})
		var n pools.PoolNode
		decodeJSON(t, resp, &n)
		list, err := json.Marshal(append(slices.Clone(n.DHCPOptions["ntp-server"]), address))
		if err != nil {
			t.Error(err)
			return
		}
		got := s.do(request{
			method: "PATCH", path: path, body: fmt.Sprintf(`{"dhcpOptions": {"ntp-server": %s}}`, list),
			header: map[string]string{"If-Match": resp.Header().Get("ETag")},
		})
		switch got.Code {
		case http.StatusOK:
			return
		case http.StatusPreconditionFailed:
		default:
			t.Errorf("%s: got %d %.300s", name, got.Code, strings.TrimSpace(got.Body.String()))
			return
		}
	}
}
