package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/pools/kube/cluster"
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
