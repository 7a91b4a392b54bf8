package client

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

// TestSignedEvents: from its config on, a node signs its events.
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
	post := func(s *Server, what string, v any) {
		t.Helper()
		if _, err := s.post(context.Background(), what, v); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Base: u, MAC: testMAC, Nonce: testNonce, Client: NewHTTP(nil)}
	s.SignEvents(nil) // of a server without a secret
	if post(s, "events", boots.Event{Step: boots.StepInit}); signature != "" {
		t.Errorf("before the config: got signature %q", signature)
	}
	key := []byte("the key of this boot")
	s.SignEvents(key)
	if post(s, "events", boots.Event{Step: boots.StepConfig}); !pools.IsSigned(key, body, signature) {
		t.Errorf("got signature %q of %s", signature, body)
	}
	if post(s, "join", pools.KeyRequest{}); signature != "" {
		t.Errorf("of a join: got signature %q", signature)
	}
}
