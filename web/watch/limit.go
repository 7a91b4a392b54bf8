package watch

import (
	"context"
	"net/http"
	"time"

	"drover/web/answer"
	"drover/web/share"
)

// The streams of the API at a time.
const (
	maxWatchers     = 64
	maxWatchersEach = 48 // of a principal
)

// patience is how long a stream of revisions waits for a place.
const patience = 5 * time.Second

// NewLimit returns the limit of the streams of several feeds together.
func NewLimit() *share.Limit { return &share.Limit{Most: maxWatchers} }

// take counts a stream. The error is an [answer.Error].
func take(l *share.Limit, w http.ResponseWriter, of ...share.Share) (release func(), err error) {
	release, ok := l.Take(of...)
	if !ok {
		return nil, refuse(w)
	}
	return release, nil
}

// wait counts a stream as take does, but waits for its place: a reader who has gone to another
// page needs one before the server has seen that the page before was left.
func wait(l *share.Limit, w http.ResponseWriter, r *http.Request, of ...share.Share) (release func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ending(r), cancel)()
	release, ok := l.Wait(ctx, of...)
	if !ok {
		return nil, refuse(w)
	}
	return release, nil
}

func refuse(w http.ResponseWriter) error {
	w.Header().Set("Retry-After", "5")
	return &answer.Error{Code: http.StatusServiceUnavailable, Name: "too-many-watchers", Msg: "too many watches at a time", Remedy: "end some, or ask at intervals"}
}
