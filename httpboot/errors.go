package httpboot

import (
	"errors"
	"fmt"
	"net/http"
	"os"
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
	Reason     Refusal       // for metrics; empty when Code says it all
}

func (e *HTTPError) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

func (e *HTTPError) Unwrap() error { return e.Err }

// Refusal is why a client did not get what it asked for, in a word, for
// metrics. A visitor that waits for an image is not refused.
type Refusal string

// The refusals, with the status that the client gets.
const (
	RefusedPath         Refusal = "path"           // 404: a path with "..", NUL or backslash, however it is encoded
	RefusedNotFound     Refusal = "not-found"      // 404: no such file; directories are none
	RefusedMAC          Refusal = "unknown-mac"    // 404: none of our machines
	RefusedMethod       Refusal = "method"         // 405
	RefusedAddress      Refusal = "address"        // 403: another's script, config, join or events
	RefusedNonce        Refusal = "nonce"          // 403: none, or one of another boot
	RefusedClaimed      Refusal = "claimed"        // 403: a nonce that is replayed with another key
	RefusedMalformed    Refusal = "malformed"      // 400: no HTTP, or not the JSON that is wanted
	RefusedBody         Refusal = "body-size"      // 413
	RefusedSlowBody     Refusal = "body-slow"      // 408
	RefusedHeader       Refusal = "header-size"    // 431
	RefusedSlowHeader   Refusal = "header-slow"    // 408
	RefusedSlowReader   Refusal = "reader-slow"    // cut in the middle of an answer
	RefusedConns        Refusal = "conns"          // 503: too many connections, see [Limits]
	RefusedAddressConns Refusal = "conns-per-node" // 429: too many of one address
	RefusedEvents       Refusal = "events"         // 429: too many events of one boot
	RefusedBusy         Refusal = "busy"           // 503: come again soon
	RefusedState        Refusal = "state"          // 409: the machine has nothing to join
)

// refusal tells why a request was refused; empty when it was not.
func (r *recorder) refusal() Refusal {
	if r.queued || r.problem {
		return ""
	}
	if e, ok := errors.AsType[*HTTPError](r.err); ok && e.Reason != "" {
		return e.Reason
	}
	if r.status < 400 && errors.Is(r.err, os.ErrDeadlineExceeded) {
		return RefusedSlowReader
	}
	return refusalOf(r.status)
}

// refusalOf tells the usual reason for a status; empty for one that is no
// refusal, or the server's own fault.
func refusalOf(status int) Refusal {
	switch status {
	case http.StatusBadRequest:
		return RefusedMalformed
	case http.StatusForbidden:
		return RefusedAddress
	case http.StatusNotFound:
		return RefusedNotFound
	case http.StatusMethodNotAllowed:
		return RefusedMethod
	case http.StatusRequestTimeout:
		return RefusedSlowBody
	case http.StatusConflict:
		return RefusedState
	case http.StatusRequestEntityTooLarge:
		return RefusedBody
	case http.StatusTooManyRequests:
		return RefusedEvents
	case http.StatusRequestHeaderFieldsTooLarge:
		return RefusedHeader
	case http.StatusServiceUnavailable:
		return RefusedBusy
	}
	return ""
}

// refuse makes an error whose message is the client's and the log's.
func refuse(code int, format string, args ...any) error {
	return &HTTPError{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// refuseFor is refuse with a reason that the code alone does not tell.
func refuseFor(reason Refusal, code int, format string, args ...any) error {
	return &HTTPError{Code: code, Msg: fmt.Sprintf(format, args...), Reason: reason}
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
