package watch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/web/share"
	"drover/web/watch"
)

// follow serves a stream for as long as looks return revisions: one each second.
func follow(w http.ResponseWriter, header map[string]string, revisions ...string) {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	s := watch.Revisions{Limit: &share.Limit{Most: 1}, Every: time.Second, Look: func() (string, bool) {
		if len(revisions) == 0 {
			return "", false
		}
		now := revisions[0]
		revisions = revisions[1:]
		return now, true
	}}
	_ = s.Serve(w, r) // the stream has it
}

// TestRevisions: each revision that a client does not have is an event, and silence is broken.
func TestRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same := strings.Split(strings.Repeat("b", 40), "")
		for _, tt := range []struct {
			header    map[string]string
			revisions []string
			want      string
		}{
			{nil, []string{"a", "a", "b"}, "alive: changed:a changed:b changed:"},
			{map[string]string{"If-None-Match": "a"}, []string{"a", "a", "b"}, "alive:a changed:b changed:"},
			{map[string]string{"If-None-Match": "a", "Last-Event-ID": "b"}, []string{"b", "c"}, "alive:b changed:c changed:"},
			{map[string]string{"If-None-Match": "b"}, same, "alive:b alive:b alive:b changed:"},
		} {
			w := httptest.NewRecorder()
			follow(w, tt.header, tt.revisions...)
			var got []string
			for event := range strings.SplitSeq(w.Body.String(), "\n\n") {
				if id, name, ok := strings.Cut(event, "\nevent: "); ok {
					got = append(got, strings.TrimSuffix(name, "\ndata: ")+":"+strings.TrimPrefix(id, "id: "))
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("with %v: got %q, want %q", tt.header, got, tt.want)
			}
		}
	})
}

// TestStalledRevisions: a client that reads nothing is given up.
func TestStalledRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stalled{ResponseWriter: httptest.NewRecorder()}
		var all []string
		for i := range 100 {
			all = append(all, strconv.Itoa(i))
		}
		follow(w, nil, all...)
		if w.pieces != 2 || w.deadlines != 2 {
			t.Errorf("%d pieces, %d time limits", w.pieces, w.deadlines)
		}
	})
}

// TestRevisionsEnd: a stream ends with its client, and with the server.
func TestRevisionsEnd(t *testing.T) {
	for _, ended := range []string{"client", "server"} {
		synctest.Test(t, func(t *testing.T) {
			client, leave := context.WithCancel(t.Context())
			server, stop := context.WithCancel(t.Context())
			defer leave()
			defer stop()
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody).WithContext(watch.WithEnd(client, server))
			s := watch.Revisions{Limit: &share.Limit{Most: 1}, Every: time.Hour, Look: func() (string, bool) { return "a", true }}
			done := make(chan error)
			began := time.Now()
			go func() { done <- s.Serve(httptest.NewRecorder(), r) }()
			synctest.Wait()
			if ended == "client" {
				leave()
			} else {
				stop()
			}
			// The clock is the bubble's: it stands still unless everything waits for it.
			if err := <-done; err != nil || !time.Now().Equal(began) {
				t.Errorf("without its %s: %v after %s", ended, err, time.Since(began))
			}
		})
	}
}

// TestRevisionsWait: a stream gets the place of one that ends soon, and is refused if none does,
// or the server ends.
func TestRevisionsWait(t *testing.T) {
	for _, ends := range []string{"another stream", "nothing", "the server"} {
		synctest.Test(t, func(t *testing.T) {
			server, stop := context.WithCancel(t.Context())
			defer stop()
			limit := &share.Limit{Most: 1}
			release, _ := limit.Take()
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody).WithContext(watch.WithEnd(t.Context(), server))
			s := watch.Revisions{Limit: limit, Every: time.Hour, Look: func() (string, bool) { return "", false }}
			done := make(chan error, 1)
			w := httptest.NewRecorder()
			go func() { done <- s.Serve(w, r) }()
			synctest.Wait()
			if len(done) > 0 {
				t.Errorf("%s ends: it does not wait", ends)
			}
			switch ends {
			case "another stream":
				release()
			case "the server":
				stop()
			}
			synctest.Wait()
			if ended := len(done) > 0; ended == (ends == "nothing") {
				t.Errorf("%s ends: the stream has its place, or is refused: %t", ends, ended)
			}
			err := <-done
			if served := err == nil; served != (ends == "another stream") || served != strings.Contains(w.Body.String(), "changed") {
				t.Errorf("%s ends: got %v and %q", ends, err, w.Body)
			}
		})
	}
}
