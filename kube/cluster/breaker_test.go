package cluster_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"drover/kube/cluster"
)

// roundTrip is an API server as a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func get(t *testing.T, ctx context.Context, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// While an API server is down, the errors have one text: it is logged once, and written into a
// status once.
func TestErrorsOfASilentServerAreTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := 40000
		b := cluster.NewBreaker(roundTrip(func(*http.Request) (*http.Response, error) {
			port++
			return nil, &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: port}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443}, Err: syscall.ECONNRESET}
		}))
		said := ""
		for n := range 200 {
			_, err := b.RoundTrip(get(t, t.Context(), "https://a/api/v1/nodes"))
			if text := err.Error(); n >= 5 && text != said {
				t.Fatalf("%d: got %q, then %q", n, said, text)
			}
			said = err.Error()
			time.Sleep(time.Second)
		}
		if !strings.Contains(said, "10.0.0.1:6443: connection reset") || port != 40_000+4+40 {
			t.Errorf("got %q after %d requests", said, port-40_000)
		}
	})
}

// A request has 10 seconds, with the time to read its answer. A watch has 15 minutes,
// since a hostile API server can hold it for ever.
func TestTimeLimit(t *testing.T) {
	silent := roundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	t.Run("no answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, err := cluster.NewBreaker(silent).RoundTrip(get(t, t.Context(), "https://a/api/v1/nodes"))
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
				t.Errorf("%v after %v, want it to end after 10 s", err, took)
			}
		})
	})
	t.Run("watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			start := time.Now()
			_, err := cluster.NewBreaker(silent).RoundTrip(get(t, ctx, "https://a/api/v1/nodes?watch=true"))
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 15*time.Minute {
				t.Errorf("%v after %v, want it to end after 15 minutes", err, took)
			}
		})
	})
	t.Run("answer", func(t *testing.T) {
		var sent *http.Request
		server := roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = r
			return &http.Response{Body: io.NopCloser(strings.NewReader("{}"))}, nil
		})
		resp, err := cluster.NewBreaker(server).RoundTrip(get(t, t.Context(), "https://a/api/v1/nodes"))
		if err != nil {
			t.Fatal(err)
		}
		if sent.Context().Err() != nil {
			t.Error("the request ended before its answer was read")
		}
		if err := resp.Body.Close(); err != nil || sent.Context().Err() == nil {
			t.Errorf("close: %v; the time limit goes on: %t", err, sent.Context().Err() == nil)
		}
	})
}
