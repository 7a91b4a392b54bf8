// Package answer turns the errors of handlers into HTTP answers, for the listener for
// operators. [Of] maps an error to its status. The body is a [Problem].
//
// The package does not know paths or clients.
package answer

import (
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

// MaxBody bounds the body of a request, in bytes.
const MaxBody = 1 << 20

// Handler answers a request, or returns an error, which becomes the answer.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Methods are the handlers of one path, by HTTP method.
type Methods map[string]Handler

// Error is an error with its HTTP status.
type Error struct {
	Code  int
	Msg   string
	Where string // FILE:LINE of the config file; empty: no line is the cause

	Name     string    // stable code; empty: that of the status
	Field    string    // parameter, or path in the body; empty: none is the cause
	Remedy   string    // empty: none is known
	Mistakes []Mistake // of a body with several
}

func (e *Error) Error() string { return e.Msg }

// BadRequest returns an [Error] with status 400.
func BadRequest(format string, args ...any) error {
	return &Error{Code: http.StatusBadRequest, Msg: fmt.Sprintf(format, args...)}
}

// BadParameter is [BadRequest] for a parameter of the query, or a header.
func BadParameter(name, remedy, format string, args ...any) error {
	return &Error{Code: http.StatusBadRequest, Name: CodeParameter, Field: name, Remedy: remedy, Msg: fmt.Sprintf(format, args...)}
}

// NotFound returns an [Error] with status 404.
func NotFound(format string, args ...any) error {
	return &Error{Code: http.StatusNotFound, Msg: fmt.Sprintf(format, args...)}
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

// Of returns err as an [Error]. Errors of unknown kinds have status 500.
func Of(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	if declared, ok := errors.AsType[*config.DeclaredError](err); ok {
		return &Error{Code: http.StatusConflict, Name: CodeDeclared, Msg: err.Error(), Where: Where(declared.Where), Remedy: "change it in the config file"}
	}
	if leased, ok := errors.AsType[*pools.LeasedError](err); ok {
		return &Error{Code: http.StatusConflict, Name: CodeLeased, Msg: leased.Error()}
	}
	if mistakes, ok := errors.AsType[mistake.Errors](err); ok {
		return ofMistakes(mistakes)
	}
	if hint, ok := errors.AsType[*pools.HintError](err); ok {
		return &Error{Code: http.StatusBadRequest, Msg: hint.Error(), Remedy: hint.Hint}
	}
	switch {
	case errors.Is(err, pools.ErrNotFound), errors.Is(err, pools.ErrNoChassis), errors.Is(err, pools.ErrNoToken), errors.Is(err, pools.ErrNoConfig), errors.Is(err, pools.ErrNotRetired), errors.Is(err, pools.ErrNoImage):
		return &Error{Code: http.StatusNotFound, Msg: err.Error()}
	case errors.Is(err, pools.ErrPowerRequest):
		return &Error{Code: http.StatusBadRequest, Msg: err.Error()}
	case errors.Is(err, pools.ErrBadImage):
		return &Error{Code: http.StatusConflict, Name: "bad-image", Msg: err.Error(), Remedy: "choose another generation: drover image list shows them"}
	case errors.Is(err, pools.ErrTokenExists):
		return &Error{Code: http.StatusConflict, Name: "token-exists", Msg: err.Error(), Remedy: "rotate it, or revoke it first"}
	case errors.Is(err, pools.ErrNotStored):
		return &Error{Code: http.StatusServiceUnavailable, Name: CodeNotStored, Msg: err.Error(), Remedy: "make the disk of the state directory work before the server restarts; drover tries again until then"}
	case errors.Is(err, pools.ErrExists):
		return &Error{Code: http.StatusConflict, Name: CodeExists, Msg: err.Error()}
	case errors.Is(err, pools.ErrNotHeld):
		return &Error{Code: http.StatusConflict, Name: CodeChanged, Msg: err.Error(), Remedy: "read the status again: the file may have changed"}
	case errors.Is(err, pools.ErrChanged):
		return &Error{Code: http.StatusConflict, Name: CodeChanged, Msg: err.Error(), Remedy: "read the node again"}
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{Code: http.StatusRequestEntityTooLarge, Msg: fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)}
	}
	return &Error{Code: http.StatusInternalServerError, Msg: err.Error()}
}
