package api_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

// sendAs sends a request with a token.
func (s *server) sendAs(token, method, path string) *httptest.ResponseRecorder {
	r := request(method, path, "")
	r.Header.Set("Authorization", "Bearer "+token)
	return s.send(r)
}

// TestRetired: a client of some pools neither sees nor forgets the retired nodes of others, and
// nobody but an admin reads what can be secret.
func TestRetired(t *testing.T) {
	s := newServer(t)
	own, other, viewer := s.as(t, pools.RoleOperator, "storage"), s.as(t, pools.RoleOperator, "compute"), s.as(t, pools.RoleViewer)
	for _, tt := range []struct {
		what, token  string
		sees, secret bool
	}{{"an admin", token, true, true}, {"a viewer", viewer, true, false}, {"the pool's", own, true, false}, {"another pool's", other, false, false}} {
		body := s.sendAs(tt.token, "GET", "/api/v1/retired").Body.String()
		if strings.Contains(body, "gone") != tt.sees || strings.Contains(body, "hunter2") != tt.secret {
			t.Errorf("%s sees %s", tt.what, body)
		}
	}
	for _, tt := range []struct {
		what, token, name string
		code              int
	}{{"a viewer", viewer, "gone", 403}, {"another pool's", other, "gone", 403}, {"a node", own, "m1", 404}, {"the pool's", own, "gone", 204}, {"twice", own, "gone", 404}} {
		if got := s.sendAs(tt.token, "DELETE", "/api/v1/retired/"+tt.name); got.Code != tt.code {
			t.Errorf("%s: got %d %s", tt.what, got.Code, got.Body)
		}
	}
	if s.API.Farm.Farm().IsRetired("gone") || len(s.entries) != 1 || s.entries[0].Action != "forget retired node" {
		t.Errorf("the audit has %+v", s.entries)
	}
}

// TestConfigHistory: the texts of the config are for admins alone, and in no audit and no log.
func TestConfigHistory(t *testing.T) {
	s := newServer(t)
	for _, role := range []string{s.as(t, pools.RoleOperator), s.as(t, pools.RoleOperator, "compute"), s.as(t, pools.RoleViewer)} {
		for _, path := range []string{"/api/v1/configs", "/api/v1/configs/1"} {
			if got := s.sendAs(role, "GET", path); got.Code != 403 {
				t.Errorf("%s: got %d %s", path, got.Code, got.Body)
			}
		}
		if got := s.sendAs(role, "POST", "/api/v1/configs/1/rollback"); got.Code != 403 {
			t.Errorf("a rollback: got %d %s", got.Code, got.Body)
		}
	}
	var list []pools.ConfigEntry
	decode(t, s.do("GET", "/api/v1/configs?limit=1", ""), &list)
	if len(list) != 1 || list[0].Number != 2 {
		t.Errorf("got %+v", list)
	}
	for path, code := range map[string]int{"/api/v1/configs/1": 200, "/api/v1/configs/9": 404, "/api/v1/configs/0": 400, "/api/v1/configs/-1": 400, "/api/v1/configs/x": 400, "/api/v1/configs/99999999999999999999": 400} {
		if got := s.do("GET", path, ""); got.Code != code {
			t.Errorf("%s: got %d %s", path, got.Code, got.Body)
		}
	}
	if got := s.do("POST", "/api/v1/configs/9/rollback", ""); got.Code != 404 {
		t.Errorf("a rollback to nothing: got %d", got.Code)
	}
	if got := s.do("POST", "/api/v1/config:answer", `{"sha256": "0000", "drop": true}`); got.Code != 409 {
		t.Errorf("an answer to nothing: got %d %s", got.Code, got.Body)
	}
	if len(s.calls) > 0 || len(s.entries) > 0 {
		t.Errorf("it did %q", s.calls)
	}
	fixture.WantNoText(t, "the log", s.log.String(), "hunter2")
}
