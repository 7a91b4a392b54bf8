package cluster

import (
	"net/http"
	"time"
)

// NewBreaker returns a breaker before next.
func NewBreaker(next http.RoundTripper) http.RoundTripper { return &breaker{next: next, now: time.Now} }
