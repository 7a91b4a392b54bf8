package watch

import (
	"net/http"
	"sync"

	"drover/web/answer"
)

// maxWatchers is the usual limit of streams.
const maxWatchers = 64

// Limit bounds the streams at a time, of several feeds together. The zero value is in use.
type Limit struct {
	Most int // streams; 0: 64
	Each int // streams of one client; 0: no limit

	mu sync.Mutex
	n  int
	of map[string]int // of each client
}

// take counts a stream of a client. The error is an [answer.Error].
func (l *Limit) take(w http.ResponseWriter, client string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.Most
	if most == 0 {
		most = maxWatchers
	}
	if l.n >= most || l.Each > 0 && l.of[client] >= l.Each {
		w.Header().Set("Retry-After", "5")
		return &answer.Error{Code: http.StatusServiceUnavailable, Name: "too-many-watchers", Msg: "too many watches at a time", Remedy: "end some, or ask at intervals"}
	}
	if l.of == nil {
		l.of = map[string]int{}
	}
	l.n++
	l.of[client]++
	return nil
}

// release ends a stream that take has counted.
func (l *Limit) release(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n--
	if l.of[client]--; l.of[client] == 0 {
		delete(l.of, client)
	}
}
