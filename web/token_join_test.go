package web_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"drover/pools"
)

// sharedTokens has one cluster with a shared token, and others without.
type sharedTokens struct{}

func (sharedTokens) SharedToken(_ context.Context, cluster string) (pools.JoinToken, error) {
	switch cluster {
	case "tenant-a":
		return pools.JoinToken{Cluster: cluster, Token: "abcdef.0123456789abcdef", Expires: time.Unix(1_800_000_000, 0).UTC(), Endpoint: "a:6443", CACertHashes: []string{"sha256:00"}}, nil
	case "per-boot":
		return pools.JoinToken{}, pools.ErrNotShared
	case "down":
		return pools.JoinToken{}, errors.New("unreachable")
	}
	return pools.JoinToken{}, pools.ErrNoCluster
}

func TestSharedToken(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Tokens = sharedTokens{} })
	tests := []struct {
		path, method string
		anonymous    bool
		code         int
		want         string
	}{
		{"/api/v1/clusters/tenant-a/token", "GET", false, 200, `"token": "abcdef.0123456789abcdef"`},
		{"/api/v1/clusters/tenant-a/token", "GET", true, 401, ""},
		{"/api/v1/clusters/tenant-a/token", "POST", false, 405, ""},
		{"/api/v1/clusters/tenant-a/token?x=y", "GET", false, 400, "x"},
		{"/api/v1/clusters/tenant-b/token", "GET", false, 404, "no such cluster"},
		{"/api/v1/clusters/per-boot/token", "GET", false, 409, "token.mode is not shared"},
		{"/api/v1/clusters/down/token", "GET", false, 503, "unreachable"},
	}
	for _, tt := range tests {
		resp := s.do(request{method: tt.method, path: tt.path, anonymous: tt.anonymous})
		if resp.Code != tt.code || !strings.Contains(resp.Body.String(), tt.want) {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.path, resp.Code, resp.Body, tt.code, tt.want)
		}
		if resp.Code != 200 && strings.Contains(resp.Body.String(), "0123456789abcdef") {
			t.Errorf("%s %s shows the token", tt.method, tt.path)
		}
	}
	// A session is for reading what is no secret (low finding: a stolen cookie read it).
	cookie := s.session(t)
	for _, method := range []string{"GET", "HEAD"} {
		for _, path := range []string{"/api/v1/clusters/tenant-a/token", "/api/v1/clusters/tenant%2da/token", "/api/v1/./clusters/tenant-a/token", "//api/v1/clusters/tenant-a/token"} {
			resp := s.do(request{method: method, path: path, anonymous: true, header: cookie})
			if resp.Code == 200 || strings.Contains(resp.Body.String(), "abcdef") {
				t.Errorf("%s %s with a session: got %d %s", method, path, resp.Code, resp.Body)
			}
		}
	}
	if log := s.log.String(); strings.Contains(log, "0123456789abcdef") || !strings.Contains(log, `msg="shared join token shown"`) {
		t.Errorf("log: %s", log)
	}
}
