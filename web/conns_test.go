package web_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
)

// listening is a server that listens on loopback.
type listening struct {
	*harness
	t      *testing.T
	addr   string
	scheme string
	client *http.Client
	stop   func() // ends the server
}

// listen starts the server of a harness, with HTTPS if secure is true.
func listen(t *testing.T, secure bool, set ...func(*harness)) *listening {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for its certificate, which is of 127.0.0.1
	certified.Close()
	s := &listening{t: t, scheme: "http", client: certified.Client()}
	s.harness = newHarness(t, func(h *harness) {
		h.Addr = "127.0.0.1:0"
		if secure {
			h.TLS, s.scheme = &tls.Config{Certificates: certified.TLS.Certificates}, "https"
		}
		for _, f := range set {
			f(h)
		}
	})
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.client.Timeout = time.Minute
	s.client.Transport.(*http.Transport).DisableKeepAlives = true
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// get requests a path on a connection of its own.
func (s *listening) get(path, token string) error {
	req, err := http.NewRequest(http.MethodGet, s.scheme+"://"+s.addr+path, http.NoBody)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// dial opens a connection that ends with the test and leaves no state in the kernel.
func (s *listening) dial() (*net.TCPConn, error) {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	tcp := c.(*net.TCPConn)
	_ = tcp.SetLinger(0) // an error leaves a port in TIME_WAIT
	return tcp, nil
}

const healthCheck = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

// Clients without the token cannot keep others from health checks and the API, whatever
// they do with how many connections (finding M1).
func TestFlood(t *testing.T) {
	const login = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken="
	tests := []struct {
		name   string
		sent   string // on each connection
		answer bool   // read an answer before the next connection
		secure bool
	}{
		{"idle after a health check", healthCheck, true, false},
		{"silent", "", false, false},
		{"half a header", healthCheck[:40], false, false},
		{"half a body", login, false, false},
		{"many requests at once", strings.Repeat(healthCheck, 10), false, false},
		{"not HTTP", "\x16\x03\x01", false, false},
		{"half a handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", false, true},
		{"silent to HTTPS", "", false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := listen(t, tt.secure)
			if err := s.get("/healthz", ""); err != nil {
				t.Fatal(err)
			}
			for range 600 {
				c, err := s.dial()
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, _ = io.WriteString(c, tt.sent) // it may be closed already
				if tt.answer {
					_, _ = bufio.NewReader(c).ReadString('\n')
				}
			}
			for _, path := range []string{"/healthz", "/readyz"} {
				if err := s.get(path, ""); err != nil {
					t.Errorf("without a token: %v", err)
				}
			}
			for _, path := range []string{"/metrics", "/api/v1/nodes"} {
				if err := s.get(path, secret); err != nil && !strings.Contains(err.Error(), "404") { // no metrics in this test
					t.Errorf("with the token: %v", err)
				}
			}
		})
	}
}

// Health checks are answered during a flood of connections from the same address, and
// the connection of an authenticated client stays open.
func TestFloodGoesOn(t *testing.T) {
	s := listen(t, false)
	operator, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	answers := bufio.NewReader(operator)
	ask := func() {
		t.Helper()
		fmt.Fprintf(operator, "GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", secret)
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("the connection of an operator: %v", err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("the connection of an operator: %s, %v", resp.Status, err)
		}
	}
	ask()
	var floods sync.WaitGroup
	for range 4 {
		floods.Go(func() {
			var held []net.Conn
			for range 1000 {
				c, err := s.dial()
				if err != nil {
					continue
				}
				_, _ = io.WriteString(c, healthCheck)
				if held = append(held, c); len(held) > 200 {
					held[0].Close()
					held = held[1:]
				}
			}
			for _, c := range held {
				c.Close()
			}
		})
	}
	for range 50 {
		fixture.Retry(t, "a health check", func() error { return s.get("/healthz", "") })
		fixture.Retry(t, "an answer of the API", func() error { return s.get("/api/v1/nodes", secret) })
	}
	floods.Wait()
	ask()
}

// Authenticated clients that leave connections open do not keep others out either.
func TestManyAuthenticated(t *testing.T) {
	s := listen(t, false)
	for range 700 {
		c, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", secret)
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	for _, token := range []string{"", secret} {
		if err := s.get("/healthz", token); err != nil {
			t.Error(err)
		}
	}
}

// TestConnectionsOfOne: a token whose connections are all busy keeps no other client out.
func TestConnectionsOfOne(t *testing.T) {
	s := listen(t, false)
	token := s.token(t, pools.RoleOperator)
	busy := func(c net.Conn) { // its body does not come
		fmt.Fprintf(c, "POST /api/v1/power HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", token)
	}
	for i := range 512 {
		c, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		busy(c)
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "100") { // it is read now
			t.Fatalf("connection %d: got %q, %v", i, line, err)
		}
	}
	if err := s.get("/api/v1/nodes", token); err == nil {
		t.Error("one more of the token: it is served")
	}
	for range 3 {
		if err := s.get("/api/v1/nodes", secret); err != nil {
			t.Errorf("another token: %v", err)
		}
	}
}
