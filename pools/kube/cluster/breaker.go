package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// A breaker opens after breakAfter requests in a row without an answer. From then on it
// lets one request through every breakFor, until one is answered.
const (
	callTimeout  = 10 * time.Second // of one request, unless it is a watch
	watchTimeout = 15 * time.Minute // of a watch; client-go asks the API server for 10 minutes at most

	breakAfter = 5
	breakFor   = 5 * time.Second
)

// breaker gives each request its time limit, and refuses requests to an API server
// that does not answer. Such a request would last until its time limit, and the
// node-facing listener serves a limited number of requests for all tenants together.
// An HTTP error of any status counts as an answer.
type breaker struct {
	next     http.RoundTripper
	now      func() time.Time
	onSilent func() // called, if not nil, while the API server does not answer

	mu     sync.Mutex
	silent int // requests in a row without an answer
	last   error
	until  time.Time // while the breaker is open: no request before
}

// RoundTrip implements [http.RoundTripper].
func (b *breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := b.allow(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	limit := callTimeout
	if isWatch(r) {
		limit = watchTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	resp, err := b.next.RoundTrip(r.WithContext(ctx))
	b.record(r.Context(), err)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = body{resp.Body, cancel}
	return resp, nil
}

func isWatch(r *http.Request) bool { return r.URL.Query().Has("watch") }

// body is the body of a response. Closing it releases the time limit of the request.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements [io.Closer].
func (b body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// allow returns an error if the breaker refuses a request now.
func (b *breaker) allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.silent < breakAfter {
		return nil
	}
	now := b.now()
	if now.Before(b.until) {
		return &silentError{b.silent, b.last}
	}
	b.until = now.Add(breakFor) // even if this request takes longer, as a watch may
	return nil
}

// record counts the result of a request.
func (b *breaker) record(ctx context.Context, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.silent, b.last = 0, nil
	case errors.Is(ctx.Err(), context.Canceled): // by the caller, independently of the server
	default:
		b.silent++
		b.last, b.until = err, b.now().Add(breakFor)
		if b.silent >= breakAfter && b.onSilent != nil {
			b.onSilent()
		}
	}
}

// silentError is the error of a request that the breaker refused. It does not wrap the
// last error, since client-go repeats a request at once after some errors.
type silentError struct {
	times int
	last  error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("no answer %d times in a row, so it is asked only every %s; the last time: %v", e.times, breakFor, e.last)
}

// Timeout reports whether the API server was too slow rather than unreachable.
func (e *silentError) Timeout() bool {
	return errors.Is(e.last, context.DeadlineExceeded) || timedOut(e.last)
}
