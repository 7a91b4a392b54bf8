package answer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/mistake"
	"drover/web/answer"
)

// problem returns the answer of a handler, which must be an error.
func problem(t *testing.T, h http.Handler, r *http.Request) (*httptest.ResponseRecorder, answer.Problem) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var p answer.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != answer.ProblemType {
		t.Fatalf("got %d %v: %v", w.Code, w.Header(), err)
	}
	if p.Status != w.Code || p.Title != http.StatusText(w.Code) || p.Code == "" || p.Type != "urn:drover:problem:"+p.Code || p.Detail == "" || p.Error != p.Detail {
		t.Errorf("got %d with %+v", w.Code, p)
	}
	return w, p
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestErrors: each kind of error has its status and its code, also one that others have added to.
func TestErrors(t *testing.T) {
	one := &mistake.Error{Origin: pools.Origin{File: "drover.yaml", Line: 7, Path: "pools[0].name"}, Msg: `unknown pool "x"`, Hint: "write y"}
	for _, tt := range []struct {
		err         error
		status      int
		code, field string
		where       string
	}{
		{answer.BadRequest("x"), 400, "bad-request", "", ""},
		{answer.BadParameter("limit", "", "x"), 400, answer.CodeParameter, "limit", ""},
		{answer.NotFound("x"), 404, "not-found", "", ""},
		{&answer.Error{Code: 401, Msg: "x"}, 401, "no-token", "", ""},
		{&answer.Error{Code: 412, Msg: "x"}, 412, answer.CodeChanged, "", ""},
		{&config.DeclaredError{Name: "m1", Where: pools.Origin{File: "drover.yaml", Line: 7}}, 409, answer.CodeDeclared, "", "drover.yaml:7"},
		{&pools.LeasedError{}, 409, answer.CodeLeased, "", ""},
		{mistake.Errors{one}, 400, answer.CodeBody, "pools[0].name", "drover.yaml:7"},
		{pools.Hint("write a MAC", "no MAC"), 400, "bad-request", "", ""},
		{pools.ErrNotFound, 404, "not-found", "", ""},
		{pools.ErrNoChassis, 404, "not-found", "", ""},
		{pools.ErrNoToken, 404, "not-found", "", ""},
		{pools.ErrPowerRequest, 400, "bad-request", "", ""},
		{pools.ErrTokenExists, 409, "token-exists", "", ""},
		{pools.ErrNotStored, 503, answer.CodeNotStored, "", ""},
		{pools.ErrExists, 409, answer.CodeExists, "", ""},
		{pools.ErrChanged, 409, answer.CodeChanged, "", ""},
		{&http.MaxBytesError{Limit: 7}, 413, "too-large", "", ""},
		{errors.New("disk full"), 500, "internal", "", ""},
	} {
		for _, err := range []error{tt.err, fmt.Errorf("node %q: %w", "m1", tt.err)} {
			h := answer.With(quiet(), func(http.ResponseWriter, *http.Request) error { return err })
			_, p := problem(t, h, httptest.NewRequest("GET", "/", nil))
			if p.Status != tt.status || p.Code != tt.code || p.Field != tt.field || p.Where != tt.where || p.Errors != nil {
				t.Errorf("%T %v: got %+v", tt.err, err, p)
			}
		}
	}
}

// TestMistakes: an answer has all mistakes of a body, and the first one in its own fields.
func TestMistakes(t *testing.T) {
	all := mistake.Errors{
		{Origin: pools.Origin{Path: "name"}, Msg: "first", Hint: "write n1"}, {Origin: pools.Origin{Path: "pool", File: "drover.yaml", Line: 3}, Msg: "second"},
	}
	_, p := problem(t, answer.With(quiet(), func(http.ResponseWriter, *http.Request) error { return all }), httptest.NewRequest("POST", "/", nil))
	if len(p.Errors) != 2 || p.Field != "name" || p.Remedy != "write n1" || p.Where != "drover.yaml:3" || p.Errors[1] != (answer.Mistake{Detail: "second", Field: "pool", Where: "drover.yaml:3"}) {
		t.Errorf("got %+v", p)
	}
	fixture.WantText(t, "the detail", p.Detail, "first", "second")
	if p := answer.Of(mistake.Errors{}).Problem(); p.Status != 400 || p.Code != answer.CodeBody {
		t.Errorf("no mistakes: %+v", p)
	}
}

// TestMethods: HEAD is GET, and the answer to another method says which ones there are.
func TestMethods(t *testing.T) {
	said := ""
	note := func(s string) answer.Handler {
		return func(_ http.ResponseWriter, r *http.Request) error { said = s + " " + r.Method; return nil }
	}
	h := answer.By(quiet(), answer.Methods{"GET": note("get"), "POST": note("post")})
	for method, want := range map[string]string{"GET": "get GET", "HEAD": "get HEAD", "POST": "post POST"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/x", nil))
		if said != want {
			t.Errorf("%s: got %q", method, said)
		}
	}
	said = ""
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "get", "TRACE"} {
		w, p := problem(t, h, httptest.NewRequest(method, "/x", nil))
		if w.Code != 405 || w.Header().Get("Allow") != "GET, POST" || p.Code != "no-such-method" || said != "" {
			t.Errorf("%s: got %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	if w, _ := problem(t, answer.By(quiet(), nil), httptest.NewRequest("GET", "/no/such", nil)); w.Code != 404 {
		t.Errorf("a path without methods: got %d", w.Code)
	}
	if w, _ := problem(t, answer.By(quiet(), answer.Methods{"POST": note("post")}), httptest.NewRequest("HEAD", "/x", nil)); w.Code != 405 {
		t.Errorf("HEAD where there is no GET: got %d", w.Code)
	}
}

// TestLog: an error of the server is in the log, and one of the client is not.
func TestLog(t *testing.T) {
	var log fixture.Log
	for _, err := range []error{errors.New("disk full"), pools.ErrNotStored, answer.NotFound("nobody")} {
		h := answer.With(slog.New(slog.NewTextHandler(&log, nil)), func(http.ResponseWriter, *http.Request) error { return err })
		problem(t, h, httptest.NewRequest("POST", "/api/v1/nodes?secret=1", nil))
	}
	fixture.WantText(t, "the log", log.String(), "disk full", pools.ErrNotStored.Error(), "path=/api/v1/nodes ")
	fixture.WantNoText(t, "the log", log.String(), "nobody", "secret")
}

// TestUnauthorized: an answer with status 401 says how to log in (RFC 9110, section 11.6.1), and
// no other does.
func TestUnauthorized(t *testing.T) {
	for code, want := range map[int]string{401: `Bearer realm="drover"`, 403: "", 404: ""} {
		w := httptest.NewRecorder()
		answer.Write(w, &answer.Error{Code: code, Msg: "x"})
		if got := w.Header().Get("WWW-Authenticate"); got != want {
			t.Errorf("%d: got %q", code, got)
		}
	}
}

// TestJSON: texts are sent as they are, and a long body is not indented.
func TestJSON(t *testing.T) {
	w := httptest.NewRecorder()
	answer.JSON(w, 201, map[string]string{"a": "<b> & \u2028 \x00"})
	if got := w.Body.String(); w.Code != 201 || w.Header().Get("Content-Type") != "application/json" || !strings.Contains(got, `"a": "<b> & `) || !json.Valid(w.Body.Bytes()) {
		t.Errorf("got %d %v %q", w.Code, w.Header(), got)
	}
	for n, indented := range map[int]bool{10: true, 2 << 20: false} {
		w := httptest.NewRecorder()
		answer.JSON(w, 200, map[string]string{"a": strings.Repeat("x", n)})
		if got := strings.Contains(w.Body.String(), "\n  "); got != indented || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d bytes: indented %t", n, got)
		}
	}
}

// TestWhere: only an origin with a file is a place that an operator can open.
func TestWhere(t *testing.T) {
	for _, tt := range []struct {
		o    pools.Origin
		want string
	}{
		{pools.Origin{}, ""}, {pools.Origin{Path: `API (node "n3")`}, ""}, {pools.Origin{File: "drover.yaml", Line: 7, Path: "pools[0]"}, "drover.yaml:7"},
	} {
		if got := answer.Where(tt.o); got != tt.want {
			t.Errorf("%+v: got %q", tt.o, got)
		}
	}
}
