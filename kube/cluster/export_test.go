package cluster

import (
	"context"
	"net/http"
	"time"
)

// NewBreaker returns a breaker before next.
func NewBreaker(next http.RoundTripper) http.RoundTripper { return &breaker{next: next, now: time.Now} }

// NewLimiter returns the transport that limits the answers of next.
func NewLimiter(c *Cluster, next http.RoundTripper) http.RoundTripper {
	return &limiter{cluster: c, next: next}
}

// Listing returns the context of the requests of a list that may take so much memory.
func Listing(ctx context.Context, limit int) context.Context {
	return context.WithValue(ctx, listingKey{}, &listing{left: limit})
}

// Cost returns the memory that JSON takes, or an error if it takes more than limit.
func Cost(text string, limit int) (int, error) {
	var s scanner
	cost, _, err := s.scan([]byte(text), limit)
	return cost, err
}

// Endpoint returns the host:port of the URL of an API server.
func Endpoint(server string) (string, error) { return endpoint(server) }
