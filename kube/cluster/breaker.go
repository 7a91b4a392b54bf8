package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
	last   *silentError
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
	if err = b.record(r.Context(), err); err != nil {
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
		return b.last
	}
	b.until = now.Add(breakFor) // even if this request takes longer, as a watch may
	return nil
}

// record counts the result of a request, and returns it. While the breaker is open, a request
// that was let through gets the error of those that are refused.
func (b *breaker) record(ctx context.Context, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.silent, b.last = 0, nil
		return nil
	case errors.Is(ctx.Err(), context.Canceled): // by the caller, independently of the server
		return err
	}
	b.silent++
	b.until = b.now().Add(breakFor)
	if b.silent < breakAfter {
		return err
	}
	b.last = &silentError{withoutPort(err)}
	if b.onSilent != nil {
		b.onSilent()
	}
	return b.last
}

// withoutPort returns an error without the local port of the connection, which is another one
// each time.
func withoutPort(err error) error {
	if op, ok := err.(*net.OpError); ok { //nolint:errorlint // the error itself is copied
		lasting := *op
		lasting.Source = nil
		return &lasting
	}
	return err
}

// silentError is the error of a request to an API server that does not answer. It does not wrap the
// last error, since client-go repeats a request at once after some errors. Its text stays the
// same while the API server is down: callers log a text and write it into a status once.
type silentError struct{ last error }

func (e *silentError) Error() string {
	return fmt.Sprintf("no answer %d times in a row or more, so it is asked only every %s; the last time: %v", breakAfter, breakFor, e.last)
}

// Timeout reports whether the API server was too slow rather than unreachable.
func (e *silentError) Timeout() bool {
	return errors.Is(e.last, context.DeadlineExceeded) || timedOut(e.last)
}
