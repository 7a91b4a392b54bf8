package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/answer"
	"drover/web/client"
)

// token is what no error may have.
const token = "the-secret-token-of-the-tests"

// serve returns a client of a server with a handler.
func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &client.Client{Base: s.URL, Token: token, HTTP: s.Client()}
}

// transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// respond returns an answer with a body.
func respond(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(body)}
}

// through returns a client whose requests go to a function.
func through(f transport) *client.Client {
	return &client.Client{Base: "https://drover.example.org", Token: token, HTTP: &http.Client{Transport: f}}
}

// endless is a body of a text without an end. It counts what was read.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (n int, _ error) {
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	e.read += n
	return n, nil
}

// maxRead is more than what a client may read of a body: 64 MB, and what its buffers take.
const maxRead = 65 << 20

// TestRequest: a call is one request, with what the server asks for.
func TestRequest(t *testing.T) {
	var got []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := r.Header
		got = append(got, strings.Join([]string{r.Method, r.URL.RequestURI(), h.Get("Authorization"), h.Get("Content-Type"), h.Get("If-Match"), string(body)}, "|"))
		answer.JSON(w, 200, nil)
	})
	ctx := t.Context()
	_, err := client.Get(ctx, c, client.Node.Of("a/b?c#d"), nil)
	_, err2 := client.Get(ctx, c, client.Nodes.Of(), url.Values{"pool": {"a b", "c"}})
	_, err3 := client.Send(ctx, c, client.PatchNode, client.Patch{"ip": nil}, "{name}")
	_, err4 := client.Send(ctx, c, client.RemoveNode.Try(), client.None{}, "m1")
	anonymous := *c
	anonymous.Token = ""
	_, err5 := anonymous.Do(ctx, client.Call{Method: "PUT", Path: "/x", IfMatch: `"1"`})
	if err := errors.Join(err, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"GET|/api/v1/nodes/a%2Fb%3Fc%23d|Bearer " + token + "|||",
		"GET|/api/v1/nodes?pool=a+b&pool=c|Bearer " + token + "|||",
		"PATCH|/api/v1/nodes/%7Bname%7D|Bearer " + token + `|application/json||{"ip":null}`,
		"DELETE|/api/v1/nodes/m1?dryRun=true|Bearer " + token + "|||",
		`PUT|/x|||"1"|`,
	} {
		if got[i] != want {
			t.Errorf("got %s, want %s", got[i], want)
		}
	}
}

// TestErrors: an error has the status and the problem of the server, or says that it is no
// drover. None has the token.
func TestErrors(t *testing.T) {
	problem := (&answer.Error{Code: 409, Name: answer.CodeExists, Field: "name", Remedy: "choose another name", Msg: `a node of that name exists: "n3"`}).Problem()
	text, err := json.Marshal(problem)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, body string
		status     int
		code, want string
	}{
		{"a problem", string(text), 409, answer.CodeExists, `a node of that name exists: "n3"`},
		{"one of before RFC 9457", `{"error": "no such node"}`, 404, "", "no such node"},
		{"no problem", `{}`, 502, "", "is that the API of a drover?"},
		{"a page", "<html>", 404, "", "is that the API of a drover?"},
		{"nothing", "", 503, "", "is that the API of a drover?"},
		{"a list", "[]", 500, "", "is that the API of a drover?"},
		{"HTTP where it is HTTPS", "Client sent an HTTP request to an HTTPS server.\n", 400, "", "begins with https"},
		{"a good status and no JSON", "<html>", 200, "", "not of the API of a drover"},
		{"a good status and another type", `{"name": 3}`, 200, "", "not of the API of a drover"},
		{"a good status and half of it", `{"name": "n3"`, 200, "", "not of the API of a drover"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			_, err := client.Get(t.Context(), c, client.Node.Of("n3"), nil)
			e, ok := errors.AsType[*client.Error](err)
			if !ok || e.Status != tt.status || e.Problem.Code != tt.code {
				t.Fatalf("got %#v", err)
			}
			fixture.WantText(t, "the error", err.Error(), tt.want)
			fixture.WantNoText(t, "the error", err.Error(), token)
		})
	}
}

// TestAccepted: a call may take one more status for a good answer, and no other.
func TestAccepted(t *testing.T) {
	status := 503
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer.JSON(w, status, []string{"x"}) })
	var out []string
	call := client.Call{Method: "GET", Path: "/readyz", Out: &out, Accepted: 503}
	if _, err := c.Do(t.Context(), call); err != nil || len(out) != 1 {
		t.Errorf("got %q, %v", out, err)
	}
	status = 500
	if _, err := c.Do(t.Context(), call); err == nil {
		t.Error("another status is no error")
	}
}

// TestUnreachable: a server that is not there, or breaks off, is another error than one that
// answers. The error names neither the token nor the URL, which the caller knows.
func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	breaksOff := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"name"`)
	})
	for name, tt := range map[string]struct {
		ctx context.Context
		c   *client.Client
	}{
		"nobody there":         {t.Context(), &client.Client{Base: gone.URL, Token: token}},
		"it breaks off":        {t.Context(), breaksOff},
		"the caller gives up":  {ended, breaksOff},
		"a token that is none": {t.Context(), &client.Client{Base: gone.URL, Token: token + "\r\nX-Evil: 1"}},
		"an endless redirect": {t.Context(), serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		})},
	} {
		_, err := client.Get(tt.ctx, tt.c, client.Nodes, nil)
		if _, ok := errors.AsType[*client.UnreachableError](err); !ok {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		fixture.WantNoText(t, name, err.Error(), token, tt.c.Base)
	}
	_, err := client.Get(t.Context(), &client.Client{Base: "https://[", Token: token}, client.Nodes, nil)
	if err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("a URL that is none: %v", err)
	}
	_, err = client.Send(t.Context(), breaksOff, client.PatchNode, client.Patch{"x": make(chan int)}, "n3")
	if err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("a body that is no JSON: %v", err)
	}
}

// TestRedirect: the token stays with the host that it is for.
func TestRedirect(t *testing.T) {
	var at []string
	c := through(func(r *http.Request) (*http.Response, error) {
		at = append(at, r.URL.Host+" "+r.Header.Get("Authorization"))
		if len(at) > 1 {
			return respond(200, strings.NewReader("[]")), nil
		}
		resp := respond(307, http.NoBody)
		resp.Header.Set("Location", "https://evil.example/api/v1/nodes")
		return resp, nil
	})
	if _, err := client.Get(t.Context(), c, client.Nodes, nil); err != nil {
		t.Fatal(err)
	}
	if len(at) != 2 || at[1] != "evil.example " {
		t.Errorf("got %q", at)
	}
}

// TestEndless: a client does not read a body without an end, of whatever status.
func TestEndless(t *testing.T) {
	for status, text := range map[int]string{200: `["x",`, 500: `{"error": "x"}`} {
		body := &endless{text: text}
		c := through(func(*http.Request) (*http.Response, error) { return respond(status, body), nil })
		_, err := client.Get(t.Context(), c, client.Nodes, nil)
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Status != status || body.read > maxRead {
			t.Errorf("%d: read %d bytes, got %v", status, body.read, err)
			continue
		}
		fixture.WantText(t, "the error", err.Error(), "more than 67108864 bytes")
	}
}

// TestNone: a change without an answer takes none, also where the server sends one.
func TestNone(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no JSON") })
	if _, err := client.Send(t.Context(), c, client.RemoveNode, client.None{}, "m1"); err != nil {
		t.Error(err)
	}
	if _, err := client.Send(t.Context(), c, client.AddNode, pools.PoolNode{}); err == nil {
		t.Error("an answer that is no JSON is no error")
	}
}
