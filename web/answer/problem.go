package answer

import (
	"bytes"
	"encoding/json"
	"net/http"

	"drover/pools"
	"drover/pools/config/mistake"
)

// ProblemType is the Content-Type of the answer for an error (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is the body of the answer for an error: problem details as of RFC 9457.
type Problem struct {
	Type   string `json:"type"`   // urn:drover:problem: and the code
	Title  string `json:"title"`  // the name of the status
	Status int    `json:"status"` // as in the answer itself
	Detail string `json:"detail"` // all mistakes as text, each with its remedy

	Code   string    `json:"code"`             // stable, for programs: node-changed
	Field  string    `json:"field,omitempty"`  // of the first mistake: changes[0].new.name, or a parameter
	Remedy string    `json:"remedy,omitempty"` // of the first mistake
	Where  string    `json:"where,omitempty"`  // FILE:LINE of the config file that is the cause
	Errors []Mistake `json:"errors,omitempty"` // of a body with several mistakes: all of them
	Error  string    `json:"error"`            // Detail again, for clients of versions before RFC 9457
}

// Mistake is one of several mistakes in a request.
type Mistake struct {
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	Where  string `json:"where,omitempty"`
}

// Checked is the answer to a check: the mistakes that it found.
type Checked struct {
	Good     bool      `json:"good"` // there are none
	Mistakes []Mistake `json:"mistakes"`
}

// The codes of errors that are not named after their status.
const (
	CodeParameter = "bad-parameter"
	CodeBody      = "bad-body"
	CodeDeclared  = "node-declared"
	CodeExists    = "node-exists"
	CodeChanged   = "node-changed"
	CodeLeased    = "address-leased"
	CodeForbidden = "forbidden-by-role"
	CodeNotStored = "not-stored"
)

// codes are the codes of errors that have none of their own.
var codes = map[int]string{
	http.StatusBadRequest:            "bad-request",
	http.StatusUnauthorized:          "no-token",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not-found",
	http.StatusMethodNotAllowed:      "no-such-method",
	http.StatusConflict:              "conflict",
	http.StatusPreconditionFailed:    CodeChanged,
	http.StatusRequestEntityTooLarge: "too-large",
	http.StatusUnsupportedMediaType:  "bad-content-type",
	http.StatusMisdirectedRequest:    "wrong-host",
	http.StatusTooManyRequests:       "too-many-attempts",
	http.StatusServiceUnavailable:    "unavailable",
	http.StatusInternalServerError:   "internal",
}

// Problem returns the body of the answer for e.
func (e *Error) Problem() Problem {
	name := e.Name
	if name == "" {
		name = codes[e.Code]
	}
	p := Problem{
		Type: "urn:drover:problem:" + name, Title: http.StatusText(e.Code), Status: e.Code, Detail: e.Msg,
		Code: name, Field: e.Field, Remedy: e.Remedy, Where: e.Where, Error: e.Msg,
	}
	if len(e.Mistakes) > 1 {
		p.Errors = e.Mistakes
	}
	return p
}

// Write writes the answer for an error.
func Write(w http.ResponseWriter, e *Error) {
	if e.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="drover"`)
	}
	write(w, e.Code, ProblemType, e.Problem())
}

// JSON writes an answer with v as its JSON body.
func JSON(w http.ResponseWriter, code int, v any) { write(w, code, "application/json", v) }

// maxIndented is the longest body that is indented for people, in bytes: to indent the list of
// 10 000 nodes takes as long as to make it.
const maxIndented = 1 << 20

func write(w http.ResponseWriter, code int, contentType string, v any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	var text, indented bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the table of routes has its type
	if text.Len() <= maxIndented && json.Indent(&indented, text.Bytes(), "", "  ") == nil {
		text = indented
	}
	_, _ = w.Write(text.Bytes()) // the client is gone
}

// ofMistakes returns the error for the mistakes of a body.
func ofMistakes(all mistake.Errors) *Error {
	e := &Error{Code: http.StatusBadRequest, Name: CodeBody, Msg: all.Error()}
	for _, m := range all {
		one := Mistake{Detail: m.Msg, Field: m.Path, Remedy: m.Hint, Where: Where(m.Origin)}
		e.Mistakes = append(e.Mistakes, one)
		if e.Where == "" {
			e.Where = one.Where
		}
	}
	if len(e.Mistakes) > 0 {
		e.Field, e.Remedy = e.Mistakes[0].Field, e.Mistakes[0].Remedy
	}
	return e
}

// Where returns FILE:LINE of an origin; "" for an origin without a file.
func Where(o pools.Origin) string {
	if o.File == "" {
		return ""
	}
	return o.Position()
}
