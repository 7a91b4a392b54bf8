// Package client calls the REST API of a drover server: [Get] reads what a [Path] leads to,
// [Send] makes a [Change], and [Watch] follows the changes of a list. Paths and changes have the
// types that the server itself uses.
//
// A [Client] needs the address of a server and a token. The caller decides by what the server
// is known: its HTTP client has the authorities or the pin.
//
// The package does not know where tokens are kept.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"drover/web/answer"
)

// maxAnswer bounds an answer, and an event of a watch, in bytes.
const maxAnswer = 64 << 20

// Client asks one server.
type Client struct {
	Base  string       // https://drover.example.org:8443
	Token string       // empty: a certificate or a socket of HTTP says who it is
	HTTP  *http.Client // nil: [http.DefaultClient]
}

// Error is an answer of the server that is an error.
type Error struct {
	Status  int
	Problem answer.Problem // empty if the answer is not of the API of a drover
	text    string
}

func (e *Error) Error() string { return e.text }

// UnreachableError is the error of a server that does not answer, or not to the end.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Call is a request of the API.
type Call struct {
	Method, Path string
	In, Out      any    // sent and decoded as JSON; nil: nothing is
	IfMatch      string // the ETag that the resource must have; empty: any
	Accepted     int    // a further status whose answer is not an error; 0: none
}

// Do makes a call, and returns the header of the answer. Its errors are [*Error] and
// [*UnreachableError].
func (c *Client) Do(ctx context.Context, call Call) (http.Header, error) {
	resp, err := c.send(ctx, call, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &UnreachableError{fmt.Errorf("the answer broke off: %w", err)}
	case len(data) > maxAnswer:
		return nil, &Error{Status: resp.StatusCode, text: fmt.Sprintf("gave an answer of more than %d bytes", maxAnswer)}
	case resp.StatusCode >= 300 && resp.StatusCode != call.Accepted:
		return nil, newError(resp, data)
	case call.Out == nil:
		return resp.Header, nil
	}
	if err := json.Unmarshal(data, call.Out); err != nil {
		return nil, &Error{Status: resp.StatusCode, text: fmt.Sprintf("gave an answer that is not of the API of a drover: %v", err)}
	}
	return resp.Header, nil
}

// newError returns the error of an answer.
func newError(resp *http.Response, body []byte) *Error {
	e := &Error{Status: resp.StatusCode}
	if json.Unmarshal(body, &e.Problem) != nil || e.Problem.Error == "" {
		e.Problem, e.text = answer.Problem{}, fmt.Sprintf("answered %s: is that the API of a drover?", resp.Status)
		if strings.Contains(string(body), "HTTP request to an HTTPS server") { // Go's server says so
			e.text = "wants HTTPS: its URL begins with https"
		}
		return e
	}
	e.text = e.Problem.Error
	return e
}

// send sends a request, and returns the answer.
func (c *Client) send(ctx context.Context, call Call, header http.Header) (*http.Response, error) {
	var body io.Reader = http.NoBody
	if call.In != nil {
		b, err := json.Marshal(call.In)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, c.Base+call.Path, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if call.In != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if call.IfMatch != "" {
		req.Header.Set("If-Match", call.IfMatch)
	}
	resp, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		if cause, ok := errors.AsType[*url.Error](err); ok {
			err = cause.Err // without the URL
		}
		return nil, &UnreachableError{err}
	}
	return resp, nil
}

// Path is a path of the API whose answer is a T.
type Path[T any] string

// Of returns the path of a resource: names take the places of those in braces.
func (p Path[T]) Of(names ...string) Path[T] { return Path[T](fill(string(p), names)) }

func fill(path string, names []string) string {
	for _, name := range names {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + url.PathEscape(name) + after
	}
	return path
}

// Get returns what is at a path. A query may be nil.
func Get[T any](ctx context.Context, c *Client, path Path[T], query url.Values) (v T, err error) {
	_, err = c.Do(ctx, Call{Method: http.MethodGet, Path: withQuery(string(path), query), Out: &v})
	return v, err
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Change is a request that changes something: its body is an In, its answer an Out.
type Change[In, Out any] struct{ Method, Path string }

// None is the body or the answer of a [Change] that has none.
type None struct{}

// Try returns the change as one that the server checks, and does not make.
func (ch Change[In, Out]) Try() Change[In, Out] {
	return Change[In, Out]{ch.Method, ch.Path + "?dryRun=true"}
}

// Send makes a change. Names take the places of those in braces in its path.
func Send[In, Out any](ctx context.Context, c *Client, ch Change[In, Out], in In, names ...string) (out Out, err error) {
	call := Call{Method: ch.Method, Path: fill(ch.Path, names)}
	if _, none := any(in).(None); !none {
		call.In = in
	}
	if _, none := any(out).(None); !none {
		call.Out = &out
	}
	_, err = c.Do(ctx, call)
	return out, err
}
