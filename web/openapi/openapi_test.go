package openapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/openapi"
	"drover/web/route"
)

// documentURL is the name of a document for the validator.
const documentURL = "https://drover.example.org/openapi.json"

// contract is a document whose schemas values can be compared with.
type contract struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
}

// newContract returns the document of a table.
func newContract(t *testing.T, table []route.Route) *contract {
	t.Helper()
	text, err := json.Marshal(openapi.Document(table))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler()}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(documentURL, doc); err != nil {
		t.Fatal(err)
	}
	return c
}

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
	schema, err := c.compiler.Compile(documentURL + "#" + pointer)
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// Thing is a body and an answer with all kinds of fields.
type Thing struct {
	Embedded
	Name    string            `json:"name"`
	Size    int64             `json:"size,omitempty"`
	Ready   bool              `json:"ready,omitempty"`
	Tags    []string          `json:"tags"`
	Labels  map[string]string `json:"labels,omitempty"`
	Address netip.Addr        `json:"address"`
	Subnet  netip.Prefix      `json:"subnet,omitzero"`
	MACs    []pools.MAC       `json:"macs,omitempty"`
	Life    pools.Duration    `json:"life,omitempty"`
	Made    time.Time         `json:"made,omitzero"`
	Role    pools.Role        `json:"role,omitempty"`
	Parent  *Thing            `json:"parent,omitempty"`
	Any     any               `json:"any,omitempty"`
	Secret  string            `json:"-"`
	hidden  int
}

// Embedded has fields that are those of the type around it.
type Embedded struct {
	ID string `json:"id,omitempty"`
}

// table is a table of routes of all kinds.
func table() []route.Route {
	return []route.Route{
		{
			Method: "GET", Path: "/api/v1/things", Summary: "All things", Role: pools.RoleViewer, Watch: true, Status: 200, Answer: []Thing{},
			Query: []route.Parameter{
				{Name: "name", About: "only this one"}, {Name: "small", About: "only small ones", Kind: route.Bool}, {Name: "since", About: "after that", Kind: route.Time},
				{Name: "limit", About: "how many", Kind: route.Count, Max: 9}, {Name: "sort", About: "the order", Kind: route.Word, Words: []string{"name", "-name"}}, {Name: "cursor", About: "where"},
			},
		},
		{Method: "POST", Path: "/api/v1/things", Summary: "Make a <b>thing</b> & more", Role: pools.RoleOperator, Body: Thing{}, Status: 201, Answer: Thing{}, Errors: []int{409}},
		{Method: "GET", Path: "/api/v1/things/{name}", Summary: "A thing", Role: pools.RoleAdmin, Secret: true, Conditional: true, Status: 200, Answer: Thing{}, Errors: []int{404}},
		{Method: "PATCH", Path: "/api/v1/things/{name}", Summary: "Change a thing", Role: pools.RoleOperator, Conditional: true, Body: Thing{}, Patch: true, Status: 200, Answer: Thing{}},
		{Method: "DELETE", Path: "/api/v1/things/{name}/parts/{id}", Summary: "Remove a part", Role: pools.RoleOperator, Status: 204},
		{Method: "POST", Path: "/api/v1/things:sync", Summary: "Read all", Role: pools.RoleOperator, Status: 202},
	}
}

// TestDocument keeps the document of a small table.
func TestDocument(t *testing.T) {
	text, err := json.MarshalIndent(openapi.Document(table()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "testdata/document.json", append(text, '\n'))
	fixture.WantNoText(t, "the document", string(text), "Secret", "hidden")
}

// TestSchemas: the document allows what encoding/json writes and reads of the types, and nothing
// else.
func TestSchemas(t *testing.T) {
	c := newContract(t, table())
	answer := []string{"paths", "/api/v1/things/{name}", "get", "responses", "200", "content", "application/json", "schema"}
	post := []string{"paths", "/api/v1/things", "post", "requestBody", "content", "application/json", "schema"}
	patch := []string{"paths", "/api/v1/things/{name}", "patch", "requestBody", "content", "application/merge-patch+json", "schema"}
	full := Thing{
		Embedded: Embedded{"7"}, Name: "a", Size: 1, Ready: true, Tags: []string{"x"}, Labels: map[string]string{"a": "b"}, Address: netip.MustParseAddr("::1"),
		Subnet: netip.MustParsePrefix("10.0.0.0/8"), MACs: []pools.MAC{{2}}, Life: pools.Duration(time.Hour), Made: time.Unix(0, 0).UTC(), Role: pools.RoleViewer,
		Parent: &Thing{}, Any: []any{1, "x", nil}, hidden: 1,
	}
	for _, v := range []Thing{{}, full} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.validate(decode(t, string(text)), answer...); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, tt := range []struct {
		what      string
		at        []string
		good, bad []string
	}{
		{"an answer", answer, nil, []string{
			`{}`, `{"name": "a", "tags": []}`, `{"name": null, "tags": [], "address": ""}`, `{"name": "a", "tags": [1], "address": ""}`, `{"name": "a", "tags": [], "address": "10.0.0.256"}`,
			`{"name": "a", "tags": [], "address": "", "Secret": "x"}`, `{"name": "a", "tags": [], "address": "", "size": 1.5}`, `{"name": "a", "tags": [], "address": "", "role": "root"}`,
			`{"name": "a", "tags": [], "address": "", "parent": {}}`, `{"name": "a", "tags": [], "address": "", "made": "yesterday"}`, `[]`, `null`,
		}},
		{"a body", post, []string{`{"name": "a", "tags": ["x"], "address": "10.0.0.1"}`, `{"name": "a", "tags": [], "address": "::1", "parent": null}`},
			[]string{`{}`, `{"name": "a", "tags": null, "address": "10.0.0.1"}`, `{"name": "a", "tags": [], "address": ""}`, `{"name": "a", "tags": [], "address": "::1", "nope": 1}`}},
		{"a patch", patch, []string{`{}`, `{"name": null, "tags": null, "labels": {"a": null}}`, `{"parent": {"name": "b"}}`}, []string{`{"nope": null}`, `{"tags": [null]}`, `{"size": "1"}`, `[]`}},
	} {
		for i, text := range append(tt.good, tt.bad...) {
			err := c.validate(decode(t, text), tt.at...)
			if good := i < len(tt.good); (err == nil) != good {
				t.Errorf("%s: %s: %v", tt.what, text, err)
			}
		}
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRoutes: each route says which role it needs, what it answers, and which errors there are.
func TestRoutes(t *testing.T) {
	c := newContract(t, table())
	for _, r := range table() {
		op := c.at("paths", r.Path, strings.ToLower(r.Method))
		responses := c.at("paths", r.Path, strings.ToLower(r.Method), "responses")
		if op["x-role"] != string(r.Role) || op["summary"] != r.Summary || op["operationId"] == "" {
			t.Errorf("%s %s: got %v", r.Method, r.Path, op)
		}
		for code, want := range map[string]bool{"401": true, "403": true, "500": true, "200": r.Status <= 201, "413": r.Body != nil, "415": r.Body != nil, "409": len(r.Errors) > 0 && r.Errors[0] == 409} {
			if _, ok := responses[code]; ok != want {
				t.Errorf("%s %s: the answer %s is there: %t", r.Method, r.Path, code, ok)
			}
		}
		if _, body := op["requestBody"]; body != (r.Body != nil) {
			t.Errorf("%s %s: there is a body: %t", r.Method, r.Path, body)
		}
		dry := strings.Contains(dump(t, op["parameters"]), `"dryRun"`)
		if dry != r.Changes() {
			t.Errorf("%s %s: dryRun is there: %t", r.Method, r.Path, dry)
		}
	}
}

func dump(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// opaque is a type whose JSON nobody knows.
type opaque struct{}

// MarshalJSON implements [json.Marshaler].
func (opaque) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

// TestUnknownTypes: a type without a schema is no silent hole in the document.
func TestUnknownTypes(t *testing.T) {
	for name, v := range map[string]any{"its own JSON": opaque{}, "a channel": make(chan int), "a number with a fraction": 1.5, "in a list": []opaque{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the document is made", name)
				}
			}()
			openapi.Document([]route.Route{{Method: "GET", Path: "/x", Status: 200, Answer: v}})
		}()
	}
}

// get returns an answer of the handler.
func get(t *testing.T, method, path string) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	openapi.Handler(slog.New(slog.DiscardHandler), table()).ServeHTTP(w, httptest.NewRequest(method, path, nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(text)
}

// TestPage: the page has each route and each type, its links lead somewhere, and it needs no
// script, and no style but its own. Texts of the table are no HTML.
func TestPage(t *testing.T) {
	resp, page := get(t, "GET", openapi.PagePath)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("got %d %v", resp.StatusCode, resp.Header)
	}
	for _, r := range table() {
		fixture.WantText(t, "the page", page, r.Method+"</b> <code>"+r.Path+"</code>")
	}
	fixture.WantText(t, "the page", page, `<article id="Thing">`, `<article id="Problem">`, "Make a &lt;b&gt;thing&lt;/b&gt; &amp; more")
	fixture.WantNoText(t, "the page", page, "<script", "style=", "ZgotmplZ", "onclick", "&lt;nil&gt;", "<b>thing")
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, ` id="`+link[1]+`"`) {
			t.Errorf("the link to %s leads nowhere", link[1])
		}
	}
}

// TestHandler: the document and the style have their types, and nothing but GET is there.
func TestHandler(t *testing.T) {
	resp, text := get(t, "GET", openapi.JSONPath)
	var doc struct{ OpenAPI string }
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.OpenAPI != "3.1.0" || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %v, %v", resp.Header, err)
	}
	if resp, text := get(t, "GET", openapi.StylePath); resp.Header.Get("Content-Type") != "text/css; charset=utf-8" || text == "" {
		t.Errorf("the style: got %v", resp.Header)
	}
	for _, tt := range []struct {
		method, path string
		code         int
	}{
		{"HEAD", openapi.PagePath, 200}, {"POST", openapi.PagePath, 405}, {"DELETE", openapi.JSONPath, 405}, {"PUT", openapi.StylePath, 405},
		{"GET", openapi.PagePath + "/x", 404}, {"GET", "/assets/page.html", 404},
	} {
		if resp, _ := get(t, tt.method, tt.path); resp.StatusCode != tt.code {
			t.Errorf("%s %s: got %d, want %d", tt.method, tt.path, resp.StatusCode, tt.code)
		}
	}
}
