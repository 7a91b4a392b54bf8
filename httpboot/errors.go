package httpboot

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"

	"drover/httpboot/script"
)

// httpError is an error with an answer for the client. Msg is for the client, Err
// for the log; neither holds a secret.
type httpError struct {
	Code       int
	Msg        string
	Err        error         // the cause; nil when Msg is complete
	RetryAfter time.Duration // above zero: the client may ask again after it
	Reason     Refusal       // for metrics; empty: the usual one of Code
}

func (e *httpError) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

func (e *httpError) Unwrap() error { return e.Err }

// Refusal is the reason for which a request was refused, for metrics. A client
// that waits for an image is not refused.
type Refusal string

// The refusals, with the status of the answer.
const (
	RefusedPath         Refusal = "path"           // 404: a path with "..", NUL or backslash, however it is encoded
	RefusedNotFound     Refusal = "not-found"      // 404: no such file; directories are none
	RefusedMAC          Refusal = "unknown-mac"    // 404: an unknown machine
	RefusedMethod       Refusal = "method"         // 405
	RefusedAddress      Refusal = "address"        // 403: a script, config, join or events of another machine
	RefusedNonce        Refusal = "nonce"          // 403: none, or one of another boot
	RefusedClaimed      Refusal = "claimed"        // 403: a nonce that is replayed with another key
	RefusedMalformed    Refusal = "malformed"      // 400: not the expected JSON
	RefusedBody         Refusal = "body-size"      // 413
	RefusedSlowBody     Refusal = "body-slow"      // 408
	RefusedHeader       Refusal = "header"         // 400, 431 or none: the connection ended before a valid header
	RefusedSlowReader   Refusal = "reader-slow"    // cut in the middle of an answer
	RefusedConns        Refusal = "conns"          // 503: too many connections, see [Limits]
	RefusedAddressConns Refusal = "conns-per-node" // 429: too many of one address
	RefusedEvents       Refusal = "events"         // 429: too many events of one boot
	RefusedBusy         Refusal = "busy"           // 503: come again soon
	RefusedState        Refusal = "state"          // 409: the machine has nothing to join
)

// refusal returns why a request was refused; empty when it was not.
func (r *recorder) refusal() Refusal {
	if r.queued || r.problem {
		return ""
	}
	if e, ok := errors.AsType[*httpError](r.Err); ok && e.Reason != "" {
		return e.Reason
	}
	if r.Status < 400 && errors.Is(r.Err, os.ErrDeadlineExceeded) {
		return RefusedSlowReader
	}
	return refusalOf(r.Status)
}

// refusalOf returns the usual reason for a status; empty for a status that is no
// refusal, or a fault of the server.
func refusalOf(status int) Refusal {
	return map[int]Refusal{
		http.StatusBadRequest:            RefusedMalformed,
		http.StatusForbidden:             RefusedAddress,
		http.StatusNotFound:              RefusedNotFound,
		http.StatusMethodNotAllowed:      RefusedMethod,
		http.StatusRequestTimeout:        RefusedSlowBody,
		http.StatusConflict:              RefusedState,
		http.StatusRequestEntityTooLarge: RefusedBody,
		http.StatusTooManyRequests:       RefusedEvents,
		http.StatusServiceUnavailable:    RefusedBusy,
	}[status]
}

// refuse makes an error whose message is for the client and the log.
func refuse(code int, format string, args ...any) error {
	return &httpError{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// refuseFor is refuse with a reason other than the usual one of the code.
func refuseFor(reason Refusal, code int, format string, args ...any) error {
	return &httpError{Code: code, Msg: fmt.Sprintf(format, args...), Reason: reason}
}

// broken makes an error about a fault of the server. The message goes to client
// and log; err to the log only.
func broken(err error, format string, args ...any) error {
	return &httpError{Code: http.StatusInternalServerError, Msg: fmt.Sprintf(format, args...), Err: err}
}

// scriptError returns an error of package script as one of HTTP.
func scriptError(e *script.Error) error {
	switch {
	case errors.Is(e, fs.ErrNotExist):
		return refuse(http.StatusNotFound, "%s", e.Msg)
	case errors.Is(e, fs.ErrPermission):
		return refuse(http.StatusForbidden, "%s", e.Msg)
	}
	return broken(e.Err, "%s", e.Msg)
}

// writeError answers with err. The client sees nothing of an error that is no
// [*httpError].
func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*httpError](err)
	if !ok {
		e = &httpError{Code: http.StatusInternalServerError, Msg: "the server has a problem, see its log"}
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, e.Msg, e.Code)
}
