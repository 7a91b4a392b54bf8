package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
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
	if err := os.WriteFile(config, []byte(fixture.ReadFile(t, config)+"# edited again\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Send(t.Context(), c, client.ReloadConfig, client.None{}); err != nil {
		t.Errorf("a reload: %v", err)
	}
	history, err := client.Get(t.Context(), c, client.ConfigHistory, nil)
	if err != nil || len(history) < 2 {
		t.Fatalf("the history: %+v, %v", history, err)
	}
	disk.Thaw(t)
	fixture.Eventually(t, "the revocation on disk", func() bool {
		return !strings.Contains(fixture.ReadFile(t, filepath.Join(state, "api-tokens.json")), "leaked")
	})
	s.kill()
	c = s.start()
	if got := s.status(leaked.Token); got != http.StatusUnauthorized {
		t.Errorf("the revoked token after a restart: %d", got)
	}
	active, activeErr := client.Get(t.Context(), c, client.Config, nil)
	if after, err := client.Get(t.Context(), c, client.ConfigHistory, nil); errors.Join(err, activeErr) != nil || after[0].SHA256 != active.SHA256 {
		t.Errorf("the history after a restart: %+v, %v", after, err)
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

// TestFrozenDiskDHCP: after a restart on a disk that hangs, a machine renews the lease that it has.
func TestFrozenDiskDHCP(t *testing.T) {
	c := newCrowd(t, "10.28.72.1-10.28.72.200")
	if err := os.Mkdir(c.state(), 0o700); err != nil {
		t.Fatal(err)
	}
	disk := fixture.NewDisk(t, c.state())
	t.Cleanup(func() {
		disk.Thaw(t)
		c.kill()
	})
	c.start()
	m := pools.MAC{2, 0xdd, 0, 0, 0, 1}
	ask := func(kind byte, message []byte) (a dhcpAnswer) {
		fixture.Eventually(t, "an answer", func() bool {
			c.send(message)
			var ok bool
			a, ok = c.receive(time.Second)
			return ok && a.mac == m && a.kind == kind
		})
		return a
	}
	offered := ask(dhcpOffer, dhcpMessage(m, 1, dhcpDiscover))
	ask(dhcpACK, dhcpMessage(m, 2, dhcpRequest, dhcpField{50, offered.addr}, dhcpField{54, crowdServer.Addr()}))
	c.kill()
	disk.Freeze(t)
	c.start()
	if again := ask(dhcpOffer, dhcpMessage(m, 3, dhcpDiscover)); again.addr != offered.addr {
		t.Errorf("it had %s, and is offered %s", offered.addr, again.addr)
	}
	disk.Thaw(t)
}
