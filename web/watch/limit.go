package watch

import (
	"net/http"

	"drover/web/answer"
	"drover/web/share"
)

// The streams of the API at a time.
const (
	maxWatchers     = 64
	maxWatchersEach = 48 // of a principal
)

// NewLimit returns the limit of the streams of several feeds together.
func NewLimit() *share.Limit { return &share.Limit{Most: maxWatchers} }

// take counts a stream. The error is an [answer.Error].
func take(l *share.Limit, w http.ResponseWriter, of ...share.Share) (release func(), err error) {
	release, ok := l.Take(of...)
	if !ok {
		w.Header().Set("Retry-After", "5")
		return nil, &answer.Error{Code: http.StatusServiceUnavailable, Name: "too-many-watchers", Msg: "too many watches at a time", Remedy: "end some, or ask at intervals"}
	}
	return release, nil
}
