package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"drover/pools"
	"drover/pools/boots"
)

// TestSignedEvents: from its config on, a node signs its events, the agent too, and no two
// have the same uptime.
func TestSignedEvents(t *testing.T) {
	var signature string
	var body []byte
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		signature = r.Header.Get(pools.SignatureHeader)
		body, _ = io.ReadAll(r.Body)
	}))
	defer h.Close()
	u, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	post := func(s *server, what string, v any) {
		t.Helper()
		if _, err := s.post(context.Background(), what, v); err != nil {
			t.Fatal(err)
		}
	}
	s := &server{Base: u, MAC: testMAC, Nonce: testNonce, Client: newHTTPClient(nil)}
	s.signEvents(nil) // of an older server
	if post(s, "events", boots.Event{Step: boots.StepInit}); signature != "" {
		t.Errorf("before the config: got signature %q", signature)
	}
	key := []byte("the key of this boot")
	s.signEvents(key)
	if post(s, "events", boots.Event{Step: boots.StepConfig}); !pools.IsSigned(key, body, signature) {
		t.Errorf("got signature %q of %s", signature, body)
	}
	if post(s, "join", pools.KeyRequest{}); signature != "" {
		t.Errorf("of a join: got signature %q", signature)
	}

	state := testState()
	state.URL, state.Events = h.URL, key
	private, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if state.Key, err = private.Bytes(); err != nil {
		t.Fatal(err)
	}
	agent, _, err := state.server()
	if err != nil {
		t.Fatal(err)
	}
	if post(agent, "events", boots.Event{Step: boots.StepOnline}); !pools.IsSigned(key, body, signature) {
		t.Errorf("of the agent: got signature %q of %s", signature, body)
	}

	rep := &reporter{Uptime: fixedUptime}
	rep.report(boots.StepConfig, "")
	rep.report(boots.StepSwitch, "")
	if a, b := rep.queue[0].Uptime, rep.queue[1].Uptime; a != 3.2 || b <= a || b > 3.3 {
		t.Errorf("got uptimes %g and %g, want 3.2 and a bit more", a, b)
	}
}
