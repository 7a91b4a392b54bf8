package web_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"drover/web/api"
	"drover/web/openapi"
)

// openAPIURL is the name of the document for the validator.
const openAPIURL = "https://drover.example.org/openapi.json"

// contract is the OpenAPI document, which answers are compared with.
type contract struct {
	doc   map[string]any
	paths *http.ServeMux // finds the path of a request

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

// theContract is the document of the API. All tests share it.
var theContract = sync.OnceValue(func() *contract {
	text, err := json.Marshal(openapi.Document((&api.API{}).Routes()))
	if err != nil {
		panic(err)
	}
	c := &contract{paths: http.NewServeMux(), compiler: jsonschema.NewCompiler()}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		c.doc = doc.(map[string]any)
		c.compiler.DefaultDraft(jsonschema.Draft2020)
		c.compiler.AssertFormat()
		err = c.compiler.AddResource(openAPIURL, doc)
	}
	if err != nil {
		panic(err)
	}
	for path := range c.at("paths") {
		c.paths.Handle(path, http.NotFoundHandler())
	}
	return c
})

// at returns an object of the document.
func (c *contract) at(keys ...string) map[string]any {
	v := c.doc
	for _, k := range keys {
		v, _ = v[k].(map[string]any)
	}
	return v
}

// validate returns what is wrong with a value of the schema at a place of the document.
func (c *contract) validate(v any, keys ...string) error {
	pointer := ""
	for _, k := range keys {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(k))
	}
	c.mu.Lock()
	schema, err := c.compiler.Compile(openAPIURL + "#" + pointer)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// checkAnswer fails the test if an answer of the API is not one that the document describes.
func checkAnswer(t *testing.T, r *http.Request, resp *http.Response) {
	t.Helper()
	c := theContract()
	_, path := c.paths.Handler(r)
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		checkStream(t, r, resp, path)
		return
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	method := strings.ToLower(r.Method)
	if method == "head" {
		method = "get"
	}
	operation, known := c.at("paths", path)[method].(map[string]any)
	switch {
	case !strings.HasPrefix(r.URL.Path, "/api/") || resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusMovedPermanently:
		return
	case !known: // 404, 405 and what comes before them
		checkProblem(t, r, resp, body)
		return
	}
	code := strconv.Itoa(resp.StatusCode)
	response, ok := operation["responses"].(map[string]any)[code].(map[string]any)
	if !ok {
		t.Errorf("%s %s: the document has no answer %s: %s", r.Method, r.URL, code, body)
		return
	}
	if response["$ref"] != nil {
		checkProblem(t, r, resp, body)
		return
	}
	content, _ := response["content"].(map[string]any)
	switch {
	case content == nil && len(body) > 0:
		t.Errorf("%s %s: %s has a body: %s", r.Method, r.URL, code, body)
	case content != nil && resp.Header.Get("Content-Type") != "application/json":
		t.Errorf("%s %s: %s is %q", r.Method, r.URL, code, resp.Header.Get("Content-Type"))
	case content != nil && (r.Method != http.MethodHead || len(body) > 0):
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = c.validate(v, "paths", path, method, "responses", code, "content", "application/json", "schema")
		}
		if err != nil {
			t.Errorf("%s %s: %v\n%s", r.Method, r.URL, err, body)
		}
	}
}

// checkStream fails the test if an answer is not a watch that the document describes: its first
// event is the list.
func checkStream(t *testing.T, r *http.Request, resp *http.Response, path string) {
	t.Helper()
	answer := []string{"paths", path, "get", "responses", "200", "content"}
	if theContract().at(append(answer, "text/event-stream")...) == nil {
		t.Errorf("%s %s: the document has no watch", r.Method, r.URL)
	}
	if r.Method == http.MethodHead {
		return
	}
	var data strings.Builder
	kind := ""
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Errorf("%s %s: the watch has no list: %v", r.Method, r.URL, err)
			return
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case field == "event":
			kind = value
		case field == "data":
			data.WriteString(value)
		case line == "\n" && kind != "":
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(data.String()))
			if err == nil {
				err = theContract().validate(v, append(answer, "application/json", "schema")...)
			}
			if err != nil || kind != "list" {
				t.Errorf("%s %s: event %s: %v\n%s", r.Method, r.URL, kind, err, data.String())
			}
			return
		}
	}
}

// checkProblem fails the test if an answer is no error of the API.
func checkProblem(t *testing.T, r *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	if r.Method == http.MethodHead && len(body) == 0 {
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = theContract().validate(v, "components", "responses", "Problem", "content", "application/problem+json", "schema")
	}
	if got := resp.Header.Get("Content-Type"); err != nil || got != "application/problem+json" {
		t.Errorf("%s %s: %d %s: %v\n%s", r.Method, r.URL, resp.StatusCode, got, err, body)
		return
	}
	var p struct {
		Type, Code, Detail string
		Status             int
	}
	if err := json.Unmarshal(body, &p); err != nil || p.Status != resp.StatusCode || p.Code == "" || p.Type != "urn:drover:problem:"+p.Code || p.Detail == "" {
		t.Errorf("%s %s: %d with %s", r.Method, r.URL, resp.StatusCode, body)
	}
}

// TestOpenAPI: the document needs no token, names each operation once, and all of its
// schemas compile.
func TestOpenAPI(t *testing.T) {
	s := newHarness(t)
	resp := s.do(request{path: "/openapi.json", anonymous: true})
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID, Summary string
			Role                 string         `json:"x-role"`
			Responses            map[string]any `json:"responses"`
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(resp.Body.Bytes(), &doc); err != nil || resp.Code != 200 || doc.OpenAPI != "3.1.0" {
		t.Fatalf("got %d, %v", resp.Code, err)
	}
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || op.Role == "" || len(op.Responses) < 3 {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			ids[op.OperationID] = true
		}
	}
	if len(ids) < 30 {
		t.Errorf("the document has %d operations", len(ids))
	}
	for name := range doc.Components.Schemas {
		if err := theContract().validate(map[string]any{"no such key": 1}, "components", "schemas", name); err == nil {
			t.Errorf("%s allows other keys", name)
		}
	}
}

// TestOpenAPIPage: the page needs no token, has each operation and type, and its links lead
// somewhere. It needs no script, and no style but its own.
func TestOpenAPIPage(t *testing.T) {
	s := newHarness(t)
	resp := s.do(request{path: "/openapi", anonymous: true})
	page := resp.Body.String()
	if resp.Code != 200 || resp.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(resp.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Fatalf("got %d %v", resp.Code, resp.Header())
	}
	for path, methods := range theContract().at("paths") {
		for method := range methods.(map[string]any) {
			if !strings.Contains(page, strings.ToUpper(method)+"</b> <code>"+path+"</code>") {
				t.Errorf("the page has no %s %s", method, path)
			}
		}
	}
	for name := range theContract().at("components", "schemas") {
		if !strings.Contains(page, `<article id="`+name+`">`) {
			t.Errorf("the page has no type %s", name)
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, ` id="`+link[1]+`"`) {
			t.Errorf("the link to %s leads nowhere", link[1])
		}
	}
	for _, bad := range []string{"<script", "style=", "ZgotmplZ", "onclick", "&lt;nil&gt;"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if resp := s.do(request{path: "/openapi.css", anonymous: true}); resp.Code != 200 || resp.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("the style: got %d %v", resp.Code, resp.Header())
	}
}
