package web_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHost: a request has to name this server, or a page of another site could read
// answers by DNS rebinding (low finding).
func TestHost(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // its certificate is of 127.0.0.1, ::1 and example.com
	defer certified.Close()
	tests := []struct {
		host string
		want bool
	}{
		{"localhost", true},
		{"localhost:8443", true},
		{"LocalHost.:8443", true},
		{"127.0.0.1:8443", true},
		{"127.1.2.3", true},
		{"[::1]:8443", true},
		{"[::ffff:127.0.0.1]:8443", true},
		{"drover.lan:8443", true},
		{"10.28.0.2", true},
		{"example.com:8443", true},
		{"evil.example", false},
		{"evil.example:8443", false},
		{"localhost.evil.example", false},
		{"127.0.0.1.evil.example:8443", false},
		{"notexample.com", false},
		{"10.28.0.3", false},
		{"0.0.0.0:8443", false},
		{"[::]:8443", false},
	}
	s := newHarness(t, func(s *harness) {
		s.Hosts = []string{"drover.lan", "10.28.0.2"}
		s.TLS = &tls.Config{Certificates: certified.TLS.Certificates}
	})
	for _, tt := range tests {
		for _, path := range []string{"/readyz", "/api/v1/nodes", "/", "/page.js"} {
			resp := s.do(request{path: path, host: tt.host})
			if got := resp.Code != 421; got != tt.want {
				t.Errorf("%s of %q: got %d, want it answered: %t", path, tt.host, resp.Code, tt.want)
			}
			if !tt.want && !strings.Contains(resp.Body.String(), "is not a name of this server") {
				t.Errorf("%s of %q: got %s", path, tt.host, resp.Body)
			}
		}
		if resp := s.do(request{path: "/healthz", host: tt.host, anonymous: true}); resp.Code != 200 {
			t.Errorf("/healthz of %q: got %d", tt.host, resp.Code)
		}
	}
}

// TestHostOfConnection: the address that a client has connected to is a name of the
// server.
func TestHostOfConnection(t *testing.T) {
	s := newHarness(t)
	for host, want := range map[string]int{"10.28.0.9:8443": 200, "10.28.0.10:8443": 421, "drover.lan": 421} {
		local := &net.TCPAddr{IP: net.IPv4(10, 28, 0, 9), Port: 8443}
		req := httptest.NewRequest("GET", "/readyz", http.NoBody).WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, local))
		req.Host = host
		w := httptest.NewRecorder()
		if s.http.ServeHTTP(w, req); w.Code != want {
			t.Errorf("%s: got %d, want %d", host, w.Code, want)
		}
	}
}
