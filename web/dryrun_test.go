package web_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"drover/pools"
)

// TestDryRun: no request with dryRun=true changes anything, and its answer is as without.
func TestDryRun(t *testing.T) {
	const nodes = "/api/v1/nodes"
	n4 := strings.NewReplacer("n3", "n4", "00-03", "00-04", "0.13", "0.14").Replace(n3)
	for _, tt := range []struct {
		name, method, path, body string
		code                     int
		want                     string
	}{
		{"add", "POST", nodes, n4, 200, `"name":"n4"`},
		{"add what exists", "POST", nodes, n3, 409, "a node of that name exists"},
		{"add with a mistake", "POST", nodes, strings.Replace(n4, "compute", "x", 1), 400, `unknown pool \"x\"`},
		{"patch", "PATCH", nodes + "/n3", `{"tags": ["gpu"]}`, 200, `"tags":["gpu"]`},
		{"patch a declared one", "PATCH", nodes + "/m1", `{"tags": ["gpu"]}`, 409, "change it there"},
		{"patch what is not there", "PATCH", nodes + "/n9", `{}`, 404, "no such node"},
		{"patch the name", "PATCH", nodes + "/n3", `{"name": "n9"}`, 400, "cannot be renamed"},
		{"remove", "DELETE", nodes + "/n3", "", 204, ""},
		{"remove a declared one", "DELETE", nodes + "/m1", "", 409, "declared"},
		{"remove what is not there", "DELETE", nodes + "/n9", "", 404, "no such node"},
		{"batch", "POST", nodes + ":batch", `{"changes": [{"new": ` + n4 + `}]}`, 200, `"changed":1`},
		{"batch with a mistake", "POST", nodes + ":batch", `{"changes": [{"new": ` + n3 + `}]}`, 409, "exists"},
		{"next boot", "PUT", nodes + "/m1/next-boot", `{"nextBoot": "local"}`, 200, `"name":"m1"`},
		{"next boot of nobody", "PUT", nodes + "/n9/next-boot", `{"nextBoot": "local"}`, 404, "no such node"},
		{"clear the next boot", "DELETE", nodes + "/m2/next-boot", "", 204, ""},
		{"power", "POST", "/api/v1/power", `{"action": "off", "nodes": ["m1"]}`, 200, `"action":"off"`},
		{"power that is refused", "POST", "/api/v1/power", `{"action": "explode"}`, 400, "unknown action"},
		{"sync", "POST", "/api/v1/chassis/m1/sync", "", 202, ""},
		{"sync what is not there", "POST", "/api/v1/chassis/m9/sync", "", 404, "no such chassis"},
		{"end a lease", "DELETE", "/api/v1/leases/10.28.72.10", "", 204, ""},
		{"end a lease that is over", "DELETE", "/api/v1/leases/10.28.72.12", "", 404, "no lease"},
		{"end no lease", "DELETE", "/api/v1/leases/10.28.72.99", "", 404, "no lease"},
		{"forget", "DELETE", "/api/v1/unknown/52:54:00:00:00:77", "", 204, ""},
		{"forget nobody", "DELETE", "/api/v1/unknown/52:54:00:00:00:78", "", 404, "no unknown machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, leases, unknown := &machines{}, someLeases(), someUnknowns()
			next := &nextBoots{next: map[string]pools.NextBoot{"m2": "local"}}
			s := newHarness(t, func(s *harness) {
				s.Hardware, s.Power, s.Audit, s.Leases, s.Unknowns, s.NextBoots = m, m, m, leases, unknown, next
			})
			s.do(request{method: "POST", path: nodes, body: n3})
			m.audit = nil
			farm, stored := s.live.Farm(), maps.Clone(s.store.nodes)
			resp := s.do(request{method: tt.method, path: tt.path + "?dryRun=true", body: tt.body})
			if got := compact(resp.Body.String()); resp.Code != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s\nwant %d with %s", resp.Code, got, tt.code, tt.want)
			}
			same := func(a, b pools.PoolNode) bool { return a.Name == b.Name && slices.Equal(a.Tags, b.Tags) }
			if s.live.Farm() != farm || !maps.EqualFunc(s.store.nodes, stored, same) {
				t.Errorf("the farm changed: %v", s.store.nodes)
			}
			if len(m.asked)+len(m.audit) > 0 || len(*unknown) != 2 || next.next["m2"] != "local" || len(next.next) != 1 {
				t.Errorf("asked %v, audit %v, unknown %v, next boots %v", m.asked, m.audit, *unknown, next.next)
			}
			if l := (*leases)[3]; l.Address != netip.MustParseAddr("10.28.72.10") || l.Released {
				t.Errorf("the lease is %v", l)
			}
		})
	}
}

// TestParameters: a parameter that a path does not have is refused, before anything changes.
func TestParameters(t *testing.T) {
	s := newHarness(t)
	for _, tt := range []struct{ method, path, want string }{
		{"GET", "/api/v1/nodes?pol=x", `unknown parameter "pol"`},
		{"GET", "/api/v1/nodes/m1?x=1", "unknown parameter"},
		{"GET", "/api/v1/nodes?dryRun=true", "unknown parameter"},
		{"GET", "/api/v1/chassis?x", "unknown parameter"},
		{"GET", "/api/v1/power/j1?limit=1", "unknown parameter"},
		{"GET", "/api/v1/boots?node=a&node=b", "is there 2 times"},
		{"GET", "/api/v1/boots?%zz", "the query is not one"},
		{"POST", "/api/v1/nodes?dryrun=true", `unknown parameter "dryrun"`},
		{"POST", "/api/v1/nodes?dryRun=yes", "want true or false"},
		{"POST", "/api/v1/nodes?dryRun", "dryRun has no value"},
		{"POST", "/api/v1/nodes?dryRun=", "dryRun has no value"},
		{"GET", "/api/v1/nodes?catchall", "catchall has no value"},
		{"POST", "/api/v1/nodes?dryRun=false&dryRun=true", "is there 2 times"},
		{"DELETE", "/api/v1/nodes/n3?force", "unknown parameter"},
	} {
		resp := s.do(request{method: tt.method, path: tt.path, body: n3})
		if got := unescaped(resp.Body.String()); resp.Code != 400 || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: got %d %s, want %s", tt.method, tt.path, resp.Code, got, tt.want)
		}
	}
	if len(s.store.nodes) > 0 {
		t.Errorf("stored %v", s.store.nodes)
	}
}
