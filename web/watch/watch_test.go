package watch_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover/web/auth"
	"drover/web/share"
	"drover/web/watch"
)

type element struct {
	Name string `json:"name"`
}

// serve sends the changes of a list to a client.
func serve(list func() []element, w http.ResponseWriter) {
	feed := &watch.Feed[element]{
		All: list, Key: func(e *element) string { return e.Name }, Limit: &share.Limit{Most: 1},
	}
	guard := auth.New(auth.NewToken("secret"), nil, false, time.Now)
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Authorization", "Bearer secret")
	guard.API(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = feed.Serve(w, r, func(*element) bool { return true }) // the stream has it
	})).ServeHTTP(w, r)
}

// TestTooManyChanges: a client that is too far behind is told, and its stream ends.
func TestTooManyChanges(t *testing.T) {
	var looks atomic.Int64
	w := httptest.NewRecorder()
	serve(func() (all []element) {
		if looks.Add(1) > 1 {
			for i := range 10_000 {
				all = append(all, element{strconv.Itoa(i)})
			}
		}
		return all
	}, w)
	if got := w.Body.String(); !strings.Contains(got, "event: list\ndata: [\ndata: ]\n\nevent: end\n") || !strings.Contains(got, `"code":"too-slow"`) {
		t.Errorf("got %.500s", got)
	}
}

// stalled is a client that reads nothing: the first pieces fit into buffers.
type stalled struct {
	http.ResponseWriter
	deadlines, pieces int
}

func (s *stalled) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stalled) SetWriteDeadline(time.Time) error {
	s.deadlines++
	return nil
}

func (s *stalled) Write(b []byte) (int, error) {
	if s.pieces++; s.pieces > 1 {
		return 0, os.ErrDeadlineExceeded
	}
	return len(b), nil
}

// TestStalled: a client that reads nothing is given up, and each piece has a time limit.
func TestStalled(t *testing.T) {
	w := &stalled{ResponseWriter: httptest.NewRecorder()}
	n := 0
	serve(func() []element {
		n++
		return []element{{strconv.Itoa(n)}}
	}, w)
	if w.pieces != 2 || w.deadlines != 2 {
		t.Errorf("%d pieces, %d time limits", w.pieces, w.deadlines)
	}
}
