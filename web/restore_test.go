package web_test

import (
	"strings"
	"testing"

	"drover/pools"
)

// restorer is a state directory with one backup that lies ready.
type restorer struct{ began []string } // by whom

var backupSum = strings.Repeat("0a", 32)

func (*restorer) Check(sum string) error {
	if sum != backupSum {
		return pools.Hint("run drover restore --now again", "another backup lies ready")
	}
	return nil
}

func (r *restorer) Restore(sum, by string) error {
	r.began = append(r.began, by)
	return r.Check(sum)
}

// TestRestore: an admin alone makes the server begin anew, with the backup that it means.
func TestRestore(t *testing.T) {
	s := newHarness(t)
	r := s.Restorer.(*restorer)
	const path = "/api/v1/state:restore"
	body := `{"sha256": "` + backupSum + `"}`
	for _, tt := range []struct {
		name  string
		req   request
		code  int
		began int
	}{
		{"another backup", request{method: "POST", path: path, body: `{"sha256": "00"}`}, 400, 0},
		{"no backup", request{method: "POST", path: path, body: `{}`}, 400, 0},
		{"a dry run", request{method: "POST", path: path + "?dryRun=true", body: body}, 202, 0},
		{"a dry run of another backup", request{method: "POST", path: path + "?dryRun=true", body: `{}`}, 400, 0},
		{"an operator", request{method: "POST", path: path, body: body, anonymous: true, header: bearer(s.token(t, pools.RoleOperator))}, 403, 0},
		{"a session", request{method: "POST", path: path, body: body, anonymous: true, header: s.session(t)}, 401, 0},
		{"an admin", request{method: "POST", path: path, body: body}, 202, 1},
	} {
		if resp := s.do(tt.req); resp.Code != tt.code || len(r.began) != tt.began {
			t.Errorf("%s: got %d, and it began %d times: %s", tt.name, resp.Code, len(r.began), resp.Body)
		}
	}
	if !strings.HasPrefix(strings.Join(r.began, ""), "token from ") {
		t.Errorf("it began for %q", r.began)
	}
}
