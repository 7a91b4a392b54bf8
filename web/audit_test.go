package web_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

// TestAuditChanges: the audit has what was before and after of next boots, leases and tokens,
// and no secret.
func TestAuditChanges(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Leases = someLeases() })
	const next, tokens = "/api/v1/nodes/m1/next-boot", "/api/v1/tokens"
	for _, tt := range []struct {
		req  request
		want string // part of the changes
	}{
		{request{method: "PUT", path: next, body: `{"nextBoot": "local"}`}, "[{nextBoot  local}]"},
		{request{method: "PUT", path: next, body: `{"nextBoot": "rescue"}`}, "[{nextBoot local rescue}]"},
		{request{method: "DELETE", path: next}, "[{nextBoot rescue }]"},
		{request{method: "DELETE", path: "/api/v1/leases/10.28.72.10"}, "{address 10.28.72.10 }"},
		{request{method: "POST", path: tokens, body: `{"name": "ci", "role": "viewer", "ttl": "1h"}`}, "{expires  2026-11-20T13:00:00Z} {name  ci} {role  viewer}"},
		{request{method: "POST", path: tokens + "/ci/rotate"}, "[]"},
		{request{method: "DELETE", path: tokens + "/ci"}, "{name ci } {role viewer }"},
	} {
		resp := s.do(tt.req)
		all := s.Audit.(*machines).audit
		if resp.Code >= 300 || len(all) == 0 {
			t.Fatalf("%s %s: got %d: %s", tt.req.method, tt.req.path, resp.Code, resp.Body)
		}
		if got := fmt.Sprint(all[0].Changes); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: got %s, want %s", tt.req.method, tt.req.path, got, tt.want)
		}
	}
	made, err := s.Named.Create(pools.APITokenRequest{Name: "x", Role: pools.RoleViewer}, "the test")
	if err != nil {
		t.Fatal(err)
	}
	resp := s.do(request{method: "POST", path: tokens + "/x/rotate"})
	_, secret, _ := strings.Cut(resp.Body.String(), `"token": "`)
	if got := fmt.Sprint(s.Audit.(*machines).audit); strings.Contains(got, made.Token) || len(secret) < 64 || strings.Contains(got, secret[:64]) {
		t.Errorf("the audit has a secret, or the answer has none: %s", got)
	}
}

// TestAuditPage: the view of the audit has what each action has changed.
func TestAuditPage(t *testing.T) {
	_, s := managed(t)
	s.addNodes(t)
	s.do(request{method: "PATCH", path: "/api/v1/nodes/n3", body: `{"pool": "storage"}`, contentType: "application/merge-patch+json"})
	fixture.WantText(t, "the audit", s.browse(t, "/audit"), "pool: compute → storage", "ip: 10.28.0.14")
	fixture.WantNoText(t, "a search", s.browse(t, "/audit?q=→+storage"), "ip: 10.28.0.14")
}
