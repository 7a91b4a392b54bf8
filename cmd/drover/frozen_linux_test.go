package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/web/client"
)

// TestFrozenDisk: a server starts on a disk that hangs, answers, and revokes a token at once.
// When the disk works again, the token is gone for good.
func TestFrozenDisk(t *testing.T) {
	s := newKilled(t)
	state := filepath.Join(s.dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	disk := fixture.NewDisk(t, state)
	c := s.start()
	var leaked struct {
		Token string `json:"token"`
	}
	if _, err := c.Do(t.Context(), client.Call{Method: "POST", Path: "/api/v1/tokens", In: map[string]string{"name": "leaked", "role": "operator"}, Out: &leaked}); err != nil {
		t.Fatal(err)
	}
	s.kill()
	// What a killed restore and an edited config leave to be written at the start.
	if err := os.WriteFile(filepath.Join(state, "restore.proposed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(s.dir, "drover.yaml")
	if err := os.WriteFile(config, []byte(fixture.ReadFile(t, config)+"# edited\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	disk.Freeze(t)
	c = s.start()
	if got := s.status(leaked.Token); got != http.StatusOK {
		t.Fatalf("the token at the start: %d", got)
	}
	revoked := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), client.Call{Method: "DELETE", Path: "/api/v1/tokens/leaked"})
		revoked <- err
	}()
	fixture.Eventually(t, "the token to end", func() bool { return s.status(leaked.Token) == http.StatusUnauthorized })
	select {
	case err := <-revoked:
		if err == nil || !strings.Contains(err.Error(), "not on disk yet") {
			t.Errorf("the answer to the revocation: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the revocation has no answer")
	}
	disk.Thaw(t)
	fixture.Eventually(t, "the revocation on disk", func() bool {
		return !strings.Contains(fixture.ReadFile(t, filepath.Join(state, "api-tokens.json")), "leaked")
	})
	s.kill()
	s.start()
	if got := s.status(leaked.Token); got != http.StatusUnauthorized {
		t.Errorf("the revoked token after a restart: %d", got)
	}
	if _, err := os.Stat(filepath.Join(state, "restore.proposed")); !os.IsNotExist(err) {
		t.Errorf("restore.proposed: %v", err)
	}
}

// status returns the status of a request with a token.
func (s *killed) status(token string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/api/v1/nodes", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
