package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"drover/node/retry"
	"drover/pools/boots"
)

// asked has the names of the servers that were asked.
type asked struct {
	mu   sync.Mutex
	text string
}

func (l *asked) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += " " + name
}

func (l *asked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(l.text)
}

// answering is a server that answers with a status, of which 0 is away.
func answering(t *testing.T, status int, to *asked, name string) *url.URL {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		to.add(name)
		switch status {
		case 0:
			panic(http.ErrAbortHandler)
		case 503:
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, name, status)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The next server is asked when one does not answer, refuses or fails, and asked first from then
// on; not when one asks for patience. A refusal counts if all refuse.
func TestOtherServer(t *testing.T) {
	for _, tt := range []struct {
		a, b  int
		asked string
		want  string // of the error: ok, busy, refused, away or failed
	}{
		{204, 204, "a a", "ok"},
		{0, 204, "a b b", "ok"},
		{500, 204, "a b b", "ok"},
		{403, 204, "a b b", "ok"},
		{503, 204, "a a", "busy"},
		{0, 503, "a b b", "busy"},
		{403, 403, "a b a b", "refused"},
		{0, 403, "a b a b", "away"},
		{403, 500, "a b a b", "failed"},
		{0, 0, "a b a b", "away"},
	} {
		t.Run(fmt.Sprintf("%d and %d", tt.a, tt.b), func(t *testing.T) {
			seen := &asked{}
			s := &Server{Base: answering(t, tt.a, seen, "a"), Also: []*url.URL{answering(t, tt.b, seen, "b")}, MAC: testMAC, Nonce: testNonce, Client: NewHTTP(nil)}
			s.Client.Transport.(*http.Transport).DisableKeepAlives = true // else the transport itself asks again
			for range 2 {
				err := s.SendEvent(t.Context(), boots.Event{Step: boots.StepInit})
				_, busy := errors.AsType[retry.Busy](err)
				_, refused := errors.AsType[Refused](err)
				got := "away"
				switch {
				case err == nil:
					got = "ok"
				case busy:
					got = "busy"
				case refused:
					got = "refused"
				case strings.Contains(err.Error(), "500"):
					got = "failed"
				}
				if got != tt.want {
					t.Errorf("got %s (%v), want %s", got, err, tt.want)
				}
			}
			if got := seen.String(); got != tt.asked {
				t.Errorf("asked %s, want %s", got, tt.asked)
			}
		})
	}
}

// Secrets go by TLS to the other servers, too.
func TestOtherServerByTLS(t *testing.T) {
	parse := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	s := &Server{Base: parse("http://192.0.2.2:8080"), Secure: parse("https://192.0.2.2:8444"), Also: []*url.URL{parse("http://192.0.2.3:8080"), parse("http://[fd00::3]")}, MAC: testMAC}
	for at, want := range []string{"https://192.0.2.2:8444/", "https://192.0.2.3:8444/", "https://[fd00::3]:8444/"} {
		if got := s.nodeURL(int32(at), "config"); !strings.HasPrefix(got, want) {
			t.Errorf("server %d: got %s, want %s", at, got, want)
		}
	}
	s.Secure = parse("https://192.0.2.2")
	if got := s.nodeURL(1, "config"); !strings.HasPrefix(got, "https://192.0.2.3:443/") {
		t.Errorf("at the usual port: got %s", got)
	}
	if got := s.URLs("/x"); len(got) != 2 || got[1] != "http://[fd00::3]/x" {
		t.Errorf("got %q", got)
	}
}
