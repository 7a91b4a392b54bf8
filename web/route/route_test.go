package route_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drover/pools"
	"drover/web/auth"
	"drover/web/route"
)

// TestListsOfOne: a client that does not read its lists keeps some of them in memory, and no
// other client from its own.
func TestListsOfOne(t *testing.T) {
	const each = 8
	tokens, err := auth.OpenTokens(t.TempDir()+"/tokens", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := tokens.Create(pools.APITokenRequest{Name: "slow", Role: pools.RoleViewer}, "the test")
	if err != nil {
		t.Fatal(err)
	}
	var now, most atomic.Int64
	began, read := make(chan bool, 100), make(chan bool)
	handler := auth.New(auth.NewToken("secret"), tokens, false, time.Now).API(route.Handler(slog.New(slog.DiscardHandler), []route.Route{{
		Method: "GET", Path: "/list", Role: pools.RoleViewer, Answer: []string{},
		Handle: func(_ http.ResponseWriter, r *http.Request) error {
			if client, _ := auth.ClientOf(r); client.Name != "slow" {
				return nil
			}
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			began <- true
			<-read
			return nil
		},
	}}))
	get := func(token string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/list", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		handler.ServeHTTP(w, r)
		return w.Code
	}
	var all sync.WaitGroup
	for range 3 * each {
		all.Go(func() {
			if code := get(slow.Token); code != http.StatusOK {
				t.Errorf("one that had to wait: got %d", code)
			}
		})
	}
	for range each {
		<-began
	}
	for range 100 {
		if code := get("secret"); code != http.StatusOK {
			t.Fatalf("another client: got %d", code)
		}
	}
	close(read)
	all.Wait()
	if got := most.Load(); got != each {
		t.Errorf("got %d lists at a time, want %d", got, each)
	}
}
