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

// httpError is an error with an answer for the client. Msg is for the client and the
// log, Err for the log only. Neither contains a secret.
type httpError struct {
	Code       int
	Msg        string
	Err        error         // the cause; may be nil
	RetryAfter time.Duration // above zero: when the client may try again
	Reason     Refusal       // for metrics; empty: the usual one of Code
}

func (e *httpError) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

func (e *httpError) Unwrap() error { return e.Err }

// Refusal is the reason for which a request was refused, for metrics. Waiting for an
// image is not a refusal.
type Refusal string

// The refusals, with the status of the answer.
const (
	RefusedPath         Refusal = "path"           // 404: a path with "..", NUL or backslash, however it is encoded
	RefusedNotFound     Refusal = "not-found"      // 404: no such file, or a directory
	RefusedMAC          Refusal = "unknown-mac"    // 404: an unknown machine
	RefusedMethod       Refusal = "method"         // 405
	RefusedAddress      Refusal = "address"        // 403: a script, config, join or events of another machine
	RefusedNonce        Refusal = "nonce"          // 403: no nonce, or that of another boot
	RefusedClaimed      Refusal = "claimed"        // 403: a nonce that is replayed with another key
	RefusedSignature    Refusal = "signature"      // 403: an event that is not signed with the key of its boot
	RefusedMalformed    Refusal = "malformed"      // 400: not the expected JSON
	RefusedBody         Refusal = "body-size"      // 413
	RefusedSlowBody     Refusal = "body-slow"      // 408
	RefusedHeader       Refusal = "header"         // 400, 431 or none: the connection ended before a valid header
	RefusedSlowReader   Refusal = "reader-slow"    // the answer was cut off
	RefusedNetwork      Refusal = "network"        // 403, or a connection that is closed: a client that is not served
	RefusedConns        Refusal = "conns"          // 503: too many connections, see [Limits]
	RefusedAddressConns Refusal = "conns-per-node" // 429: too many of one address
	RefusedEvents       Refusal = "events"         // 429: too many events of one boot
	RefusedBusy         Refusal = "busy"           // 503: the client may try again soon
	RefusedState        Refusal = "state"          // 409: the machine has no cluster to join
)

// refusal returns the reason for which a request was refused; empty if it was not.
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

// refusalOf returns the usual reason for a status. It is empty for success and for faults
// of the server.
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

// refuse returns an error whose message is for the client and the log.
func refuse(code int, format string, args ...any) error {
	return &httpError{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// refuseFor is refuse with a reason other than the usual one of the code.
func refuseFor(reason Refusal, code int, format string, args ...any) error {
	return &httpError{Code: code, Msg: fmt.Sprintf(format, args...), Reason: reason}
}

// broken returns an error for a fault of the server. The message is for client and log,
// err for the log only.
func broken(err error, format string, args ...any) error {
	return &httpError{Code: http.StatusInternalServerError, Msg: fmt.Sprintf(format, args...), Err: err}
}

// scriptError converts an error of package script to an [*httpError].
func scriptError(e *script.Error) error {
	switch {
	case errors.Is(e, fs.ErrNotExist):
		return refuse(http.StatusNotFound, "%s", e.Msg)
	case errors.Is(e, fs.ErrPermission):
		return refuse(http.StatusForbidden, "%s", e.Msg)
	}
	return broken(e.Err, "%s", e.Msg)
}

// writeError answers with err. For an error that is not an [*httpError] the client gets a
// general text.
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
