package httpboot

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// HTTPError is an error that knows what to tell the client. Msg is the
// client's, Err is for the log; neither holds a secret.
type HTTPError struct {
	Code       int
	Msg        string
	Err        error         // nil when Msg says it all
	RetryAfter time.Duration // above zero: the client is told when to come again
}

func (e *HTTPError) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

func (e *HTTPError) Unwrap() error { return e.Err }

// refuse makes an error whose message is the client's and the log's.
func refuse(code int, format string, args ...any) error {
	return &HTTPError{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// broken makes an error for what the client cannot help. The message goes to
// both; err to the log only.
func broken(err error, format string, args ...any) error {
	return &HTTPError{Code: http.StatusInternalServerError, Msg: fmt.Sprintf(format, args...), Err: err}
}

// writeError answers with err. What is no [HTTPError] shows the client nothing.
func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*HTTPError](err)
	if !ok {
		e = &HTTPError{Code: http.StatusInternalServerError, Msg: "the server has a problem, see its log"}
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, e.Msg, e.Code)
}
