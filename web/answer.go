package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config"
)

// handler answers a request, or returns the error that does.
type handler func(w http.ResponseWriter, r *http.Request) error

// methods are the handlers of one path.
type methods map[string]handler

// failure is an error with the status that answers it.
type failure struct {
	code  int
	msg   string
	where string // FILE:LINE
}

func (f *failure) Error() string { return f.msg }

func badRequest(format string, args ...any) error {
	return &failure{code: http.StatusBadRequest, msg: fmt.Sprintf(format, args...)}
}

// answer chooses the handler of a path by method. HEAD is GET, whose body
// net/http leaves out. No methods at all is a path that is not there.
func (s *Server) answer(m methods) http.Handler {
	return s.answerAll(func(w http.ResponseWriter, r *http.Request) error {
		if len(m) == 0 {
			return &failure{code: http.StatusNotFound, msg: fmt.Sprintf("no such path %q", r.URL.Path)}
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
		return &failure{code: http.StatusMethodNotAllowed, msg: fmt.Sprintf("%s wants %s, not %s", r.URL.Path, strings.Join(allowed, " or "), r.Method)}
	})
}

func (s *Server) answerAll(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.refuse(w, r, err)
		}
	})
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	f := asFailure(err)
	if f.code >= http.StatusInternalServerError {
		s.Log.Error("request not served", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	writeFailure(w, f)
}

func writeFailure(w http.ResponseWriter, f *failure) {
	if f.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="drover"`)
	}
	writeJSON(w, f.code, struct {
		Error string `json:"error"`
		Where string `json:"where,omitempty"`
	}{f.msg, f.where})
}

// asFailure finds the status for an error.
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if declared, ok := errors.AsType[*config.DeclaredError](err); ok {
		return &failure{http.StatusConflict, err.Error(), fileLine(declared.Where)}
	}
	if mistakes, ok := errors.AsType[config.Errors](err); ok {
		f := &failure{code: http.StatusBadRequest, msg: mistakes.Error()}
		for _, m := range mistakes {
			if f.where == "" {
				f.where = fileLine(m.Origin)
			}
		}
		return f
	}
	if hint, ok := errors.AsType[*pools.HintError](err); ok {
		return &failure{code: http.StatusBadRequest, msg: hint.Error()}
	}
	switch {
	case errors.Is(err, pools.ErrNotFound):
		return &failure{code: http.StatusNotFound, msg: err.Error()}
	case errors.Is(err, pools.ErrNoChassis):
		return &failure{code: http.StatusNotFound, msg: err.Error()}
	case errors.Is(err, pools.ErrOrder):
		return &failure{code: http.StatusBadRequest, msg: err.Error()}
	case errors.Is(err, pools.ErrExists), errors.Is(err, pools.ErrChanged):
		return &failure{code: http.StatusConflict, msg: err.Error()}
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &failure{code: http.StatusRequestEntityTooLarge, msg: fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)}
	}
	return &failure{code: http.StatusInternalServerError, msg: err.Error()}
}

// fileLine is where an origin points to in a file; "" when it is in none.
func fileLine(o pools.Origin) string {
	if o.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client is gone
}

func healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
	return nil
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	problems := s.Ready(r.Context())
	ready, code := isReady(problems), http.StatusOK
	if !ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, struct {
		Ready    bool      `json:"ready"`
		Problems []Problem `json:"problems,omitempty"`
	}{ready, problems})
	return nil
}

// isReady tells whether there are no more than warnings.
func isReady(problems []Problem) bool {
	return !slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	s.Metrics.ServeHTTP(w, r)
	return nil
}
