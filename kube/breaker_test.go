package kube_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/pools"
)

// quietServer is an API server that accepts requests, but does not answer while dark is
// set.
type quietServer struct {
	dark  atomic.Bool
	asked atomic.Int32
}

// An API server that does not answer gets few requests: its nodes get an error with a
// retry time at once, and hold no resources that other tenants need.
func TestBreaker(t *testing.T) {
	s := newAPIServer(t)
	var q quietServer
	s.set("GET nodes", func(w http.ResponseWriter, r *http.Request) {
		q.asked.Add(1)
		if q.dark.Load() {
			<-r.Context().Done()
			return
		}
		fail(404, "NotFound", "nodes not found")(w, r)
	})
	var now atomic.Int64
	c := &kube.Clusters{Now: func() time.Time { return time.Unix(now.Load(), 0) }}
	c.Set([]pools.Cluster{{Name: "tenant-a", Kubeconfig: s.kubeconfig()}})
	t.Cleanup(c.Close)
	ask := func(wait time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		_, err := c.Join(ctx, plan(), addr(), "")
		return err
	}
	if err := ask(time.Minute); err != nil {
		t.Fatal(err)
	}
	q.dark.Store(true)
	open := func(err error) bool { return err != nil && strings.Contains(err.Error(), "times in a row") }
	tries := 0
	for ; !open(ask(50 * time.Millisecond)); tries++ { // on a busy machine a request may end before it arrives
	}
	if tries < 4 { // and the watch for Ready
		t.Fatalf("it was asked %d times, want it to get 5 chances", tries)
	}
	asked := q.asked.Load()
	for range 100 {
		err := ask(time.Minute)
		if err == nil || !strings.Contains(err.Error(), "the API server does not answer in time") || !open(err) {
			t.Fatalf("got %v, want it to be given up", err)
		}
	}
	if got := q.asked.Load(); got != asked {
		t.Errorf("asked %d times while it is known to be silent", got-asked)
	}
	now.Add(5)
	if err := ask(3 * time.Second); err == nil || q.asked.Load() != asked+1 {
		t.Errorf("after a while: %v, asked %d times, want it to be tried once", err, q.asked.Load()-asked)
	}
	if err := ask(time.Minute); err == nil || q.asked.Load() != asked+1 {
		t.Errorf("right after: %v, asked %d times", err, q.asked.Load()-asked)
	}
	q.dark.Store(false)
	now.Add(5)
	for range 3 {
		if err := ask(time.Minute); err != nil {
			t.Errorf("it is back: %v", err)
		}
	}
}

// A request that its caller cancels does not count.
func TestBreakerIgnoresCancel(t *testing.T) {
	s := newAPIServer(t)
	s.set("GET nodes", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c, _ := newClusters(t, s.kubeconfig())
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		before := s.count("GET nodes")
		left := make(chan error)
		go func() {
			_, err := c.Join(ctx, plan(), addr(), "")
			left <- err
		}()
		fixture.Eventually(t, "asked", func() bool { return s.count("GET nodes") > before })
		cancel()
		if err := <-left; err == nil || strings.Contains(err.Error(), "in a row") {
			t.Fatal(err)
		}
	}
}

// An API server that cannot be reached.
func TestBreakerUnreachable(t *testing.T) {
	s := newAPIServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := "https://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.URL = unused // for the kubeconfig
	c, _ := newClusters(t, s.kubeconfig())
	for range 5 {
		_ = joins(t, c)
	}
	if err := joins(t, c); err == nil || !strings.Contains(err.Error(), "the API server is unreachable") || !strings.Contains(err.Error(), "in a row") {
		t.Errorf("got %v", err)
	}
}
