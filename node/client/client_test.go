package client

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/node/cmdline"
	"drover/node/retry"
	"drover/pools"
	"drover/pools/boots"
)

const testNonce = "00112233445566778899aabbccddeeff"

var testMAC = pools.MAC{0x52, 0x54, 0, 0x77, 0, 1}

func TestServerAwayHasShortError(t *testing.T) {
	u, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Base: u, MAC: testMAC, Nonce: testNonce, Client: NewHTTP(nil)}
	_, err = s.post(t.Context(), "events", boots.Event{})
	if want := "dial tcp 127.0.0.1:1: connect: connection refused"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestStatusError: a limit and a busy server are repeated alike, but not the same.
func TestStatusError(t *testing.T) {
	for status, want := range map[int][3]bool{ // Busy, TooMany, Refused
		403: {false, false, true}, 429: {true, true, false}, 500: {}, 503: {true, false, false},
	} {
		err := StatusError(&http.Response{StatusCode: status, Status: fmt.Sprint(status), Body: io.NopCloser(strings.NewReader("why\n"))})
		_, busy := errors.AsType[retry.Busy](err)
		_, many := errors.AsType[TooMany](err)
		_, refused := errors.AsType[Refused](err)
		if got := [3]bool{busy, many, refused}; got != want || err.Error() != fmt.Sprintf("server answers %d: why", status) {
			t.Errorf("%d: got %v, %v, want %v", status, got, err, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		in   string
		want time.Duration
	}{
		{"", 0},
		{"5", 5 * time.Second},
		{"-5", 0},
		{"99999999999", time.Minute},
		{"soon", 0},
		{"Fri, 20 Nov 2026 12:00:30 GMT", 30 * time.Second},
		{"Fri, 20 Nov 2026 11:00:00 GMT", 0},
		{"Fri, 20 Nov 2099 11:00:00 GMT", time.Minute},
	} {
		if got := retryAfter(tt.in, now); got != tt.want {
			t.Errorf("retryAfter(%q): got %v, want %v", tt.in, got, tt.want)
		}
	}
	if got := retryAfter(strings.Repeat("9", 400), now); got != 0 {
		t.Errorf("a number out of range: got %v, want 0", got)
	}
}

// secured is the server of a node that is told a pin: a plain listener, and one
// with TLS.
type secured struct {
	plain, tls *httptest.Server
	pin        string

	mu  sync.Mutex
	got []string
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{}
	note := func(scheme string) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.got = append(s.got, scheme+" "+r.URL.Path)
		})
	}
	s.plain, s.tls = httptest.NewServer(note("http")), httptest.NewUnstartedServer(note("https"))
	s.tls.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that clients break off
	s.tls.StartTLS()
	t.Cleanup(s.plain.Close)
	t.Cleanup(s.tls.Close)
	sum := sha256.Sum256(s.tls.Certificate().RawSubjectPublicKeyInfo)
	s.pin = hex.EncodeToString(sum[:])
	return s
}

func (s *secured) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// node is what a node makes of its command line.
func (s *secured) node(t *testing.T, pin string) *Server {
	t.Helper()
	a, err := cmdline.Parse(fmt.Sprintf("drover.url=%s drover.https=%s drover.pin=sha256:%s drover.mac=%s drover.nonce=%s drover.image=sha256:%s drover.root=/images/x/y/root.squashfs",
		s.plain.URL, s.tls.URL, pin, testMAC, testNonce, strings.Repeat("0", 64)))
	if err != nil {
		t.Fatal(err)
	}
	client := NewHTTP(a.Pin)
	t.Cleanup(client.CloseIdleConnections)
	return &Server{Base: a.URL, Secure: a.Secure, MAC: a.MAC, Nonce: a.Nonce, Client: client}
}

func TestPin(t *testing.T) {
	s := newSecured(t)
	n := s.node(t, s.pin)
	for _, what := range []string{"config", "join", "events"} {
		if _, err := n.post(t.Context(), what, struct{}{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	base := "https /node/" + testMAC.Dashed()
	if got, want := s.requests(), []string{base + "/config", base + "/join", base + "/events"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A server with another key learns nothing, not even the nonce.
func TestPinOfAnother(t *testing.T) {
	s := newSecured(t)
	_, err := s.node(t, strings.Repeat("ab", 32)).post(t.Context(), "config", struct{}{})
	if err == nil || !strings.Contains(err.Error(), "not that of drover.pin") || !strings.Contains(err.Error(), s.pin) {
		t.Errorf("got %v, want the key named", err)
	}
	if got := s.requests(); len(got) > 0 {
		t.Errorf("the other server got %q", got)
	}
}
