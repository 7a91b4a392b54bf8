// Package answer turns the errors of handlers into HTTP answers, for the listener for
// operators. [Of] maps an error to its status. The body is
// {"error": "...", "where": "drover.yaml:41"}. It contains "where" when a line of the
// operator's file is the cause.
//
// The package does not know paths or clients.
package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/mistake"
)

// Handler answers a request, or returns an error, which becomes the answer.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Methods are the handlers of one path, by HTTP method.
type Methods map[string]Handler

// Error is an error with its HTTP status.
type Error struct {
	Code  int
	Msg   string
	Where string // FILE:LINE of the config file; empty: no line is the cause
}

func (e *Error) Error() string { return e.Msg }

// BadRequest returns an [Error] with status 400.
func BadRequest(format string, args ...any) error {
	return &Error{Code: http.StatusBadRequest, Msg: fmt.Sprintf(format, args...)}
}

// By returns a handler that selects one of m by the HTTP method. HEAD selects GET, and
// net/http omits the body. The answer is 405 for a method that is not in m, and 404 if m
// is empty.
func By(log *slog.Logger, m Methods) http.Handler {
	return With(log, func(w http.ResponseWriter, r *http.Request) error {
		if len(m) == 0 {
			return &Error{Code: http.StatusNotFound, Msg: fmt.Sprintf("no such path %q", r.URL.Path)}
		}
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		if h := m[method]; h != nil {
			return h(w, r)
		}
		var allowed []string
		for name := range m {
			allowed = append(allowed, name)
		}
		slices.Sort(allowed)
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return &Error{Code: http.StatusMethodNotAllowed, Msg: fmt.Sprintf("%s accepts %s, not %s", r.URL.Path, strings.Join(allowed, " or "), r.Method)}
	})
}

// With returns a handler for h. It answers the error of h, and logs errors with status
// 500 and above.
func With(log *slog.Logger, h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			e := Of(err)
			if e.Code >= http.StatusInternalServerError {
				log.Error("request not served", "method", r.Method, "path", r.URL.Path, "err", err)
			}
			Write(w, e)
		}
	})
}

// Write writes the answer for an error.
func Write(w http.ResponseWriter, e *Error) {
	if e.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="drover"`)
	}
	JSON(w, e.Code, struct {
		Error string `json:"error"`
		Where string `json:"where,omitempty"`
	}{e.Msg, e.Where})
}

// Of returns err as an [Error]. Errors of unknown kinds have status 500.
func Of(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	if declared, ok := errors.AsType[*config.DeclaredError](err); ok {
		return &Error{http.StatusConflict, err.Error(), Where(declared.Where)}
	}
	if leased, ok := errors.AsType[*pools.LeasedError](err); ok {
		return &Error{Code: http.StatusConflict, Msg: leased.Error()}
	}
	if mistakes, ok := errors.AsType[mistake.Errors](err); ok {
		f := &Error{Code: http.StatusBadRequest, Msg: mistakes.Error()}
		for _, m := range mistakes {
			if f.Where == "" {
				f.Where = Where(m.Origin)
			}
		}
		return f
	}
	if hint, ok := errors.AsType[*pools.HintError](err); ok {
		return &Error{Code: http.StatusBadRequest, Msg: hint.Error()}
	}
	switch {
	case errors.Is(err, pools.ErrNotFound), errors.Is(err, pools.ErrNoChassis):
		return &Error{Code: http.StatusNotFound, Msg: err.Error()}
	case errors.Is(err, pools.ErrPowerRequest):
		return &Error{Code: http.StatusBadRequest, Msg: err.Error()}
	case errors.Is(err, pools.ErrExists), errors.Is(err, pools.ErrChanged):
		return &Error{Code: http.StatusConflict, Msg: err.Error()}
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{Code: http.StatusRequestEntityTooLarge, Msg: fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)}
	}
	return &Error{Code: http.StatusInternalServerError, Msg: err.Error()}
}

// Where returns FILE:LINE of an origin; "" for an origin without a file.
func Where(o pools.Origin) string {
	if o.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// JSON writes an answer with v as its JSON body.
func JSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client is gone
}
