package web_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"drover/pools"
	"drover/web/api"
)

// generator makes requests from the OpenAPI document, valid ones and others. The same seed
// makes the same requests.
type generator struct {
	*rand.Rand
	c    *contract
	keep int // how many of ten fields an object has
}

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

// strange are values that are of no use anywhere.
var strange = []string{
	"", " ", "-1", "0", "99999999999999999999", "true", "null", "[]", "{}", "..", "%2e%2e%2f", "a/b", "\x00", "\xff\xfe", "Ω≈ç√", "\u202e",
	strings.Repeat("x", 5000), "'; DROP TABLE nodes --", "<script>", "m1,m2", ",", "2026-13-45T99:99:99Z", "10.28.0.256", "::1", "\r\nX: y",
}

// known are values that have a meaning in the farm of the tests.
var known = []string{
	"m1", "m2", "n3", "x1", "compute", "storage", "catchall", "tenant-a", "lobby", "debug", "gpu", "debian-12", "j1", "on", "off", "pxe", "status",
	"52:54:00:00:00:01", "52:54:00:00:00:77", "02:00:00:00:00:09", "10.28.72.10", "10.28.0.13", "10.28.0.99", "local", "rescue", "viewer", "operator", "1h",
	"2026-11-20T12:00:00Z", "active", "c1n1",
}

// hints are values of fields and of parameters in paths, by name.
var hints = map[string][]string{
	"name": {"n3", "n7", "m1", "ci"}, "node": {"m1", "n3"}, "nextBoot": {"local", "rescue"}, "action": {"on", "off", "pxe", "status"},
	"pool": {"compute", "storage"}, "role": {"viewer", "operator"}, "cluster": {"tenant-a", "per-boot"}, "id": {"j1", "j2"},
	"ip": {"10.28.0.77", "10.28.0.78"}, "macs": {"02:00:00:00:00:07"}, "mac": {"52:54:00:00:00:77", "52:54:00:00:00:01"}, "address": {"10.28.72.10", "10.28.72.13"}, "tags": {"gpu"},
	"content": {farmText, "pools: []", "pools: [{name: x}]"},
}

// hint returns a word for a field or parameter of that name.
func (g *generator) hint(name string) string {
	if all := hints[name]; all != nil && g.IntN(4) > 0 {
		return pick(g, all...)
	}
	return g.word()
}

func (g *generator) word() string {
	if g.IntN(4) == 0 {
		return pick(g, strange...)
	}
	return pick(g, known...)
}

// value returns a value of a schema, or sometimes another one.
func (g *generator) value(name string, schema map[string]any, depth int) any {
	if ref, ok := schema["$ref"].(string); ok {
		schema = g.c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	if either, ok := schema["anyOf"].([]any); ok {
		schema, _ = pick(g, either...).(map[string]any)
	}
	if depth > 6 || g.IntN(25) == 0 {
		return pick[any](g, nil, true, -1, 1e300, g.word(), []any{}, map[string]any{}, []any{[]any{nil}})
	}
	if words, ok := schema["enum"].([]any); ok {
		return pick(g, words...)
	}
	switch schema["type"] {
	case "object":
		out := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range sortedKeys(properties) {
			p := properties[name]
			if g.IntN(10) < g.keep {
				if p, ok := p.(map[string]any); ok {
					out[name] = g.value(name, p, depth+1)
				}
			}
		}
		if values, ok := schema["additionalProperties"].(map[string]any); ok {
			out[pick(g, "42", "ntp-server", g.word())] = g.value("", values, depth+1)
		} else if g.IntN(20) == 0 {
			out[g.word()] = g.word()
		}
		return out
	case "array":
		out := []any{}
		for range g.IntN(4) {
			if items, ok := schema["items"].(map[string]any); ok {
				out = append(out, g.value(name, items, depth+1))
			}
		}
		return out
	case "boolean":
		return g.IntN(2) == 0
	case "integer":
		return g.IntN(100) - 10
	case "null":
		return nil
	}
	return g.hint(name)
}

// request returns a request of an operation.
func (g *generator) request(base, method, path string, operation map[string]any) *http.Request {
	g.keep = pick(g, 1, 4, 8)
	query := url.Values{}
	header := http.Header{}
	parameters, _ := operation["parameters"].([]any)
	for _, p := range parameters {
		p, _ := p.(map[string]any)
		name, _ := p["name"].(string)
		schema, _ := p["schema"].(map[string]any)
		text := fmt.Sprint(g.value(name, schema, 0))
		switch p["in"] {
		case "path":
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(g.hint(name)), 1)
		case "header":
			if g.IntN(3) == 0 {
				header.Set(name, pick(g, "*", `"x"`, "W/\"x\"", "x", ","))
			}
		default:
			if g.IntN(4) == 0 {
				query.Add(name, text)
			}
			if g.IntN(50) == 0 {
				query.Add(name, g.word())
			}
		}
	}
	if g.IntN(20) == 0 {
		query.Set(pick(g, "Limit", "nope", "dryrun", g.word()), g.word())
	}
	body, kind := g.body(operation)
	r, err := http.NewRequest(strings.ToUpper(method), base+path+"?"+query.Encode(), strings.NewReader(body))
	if err != nil {
		return nil // a path that no client can send
	}
	r.Header = header
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	return r
}

func (g *generator) body(operation map[string]any) (body, kind string) {
	described, ok := operation["requestBody"].(map[string]any)
	if !ok {
		return "", ""
	}
	content, _ := described["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	schema, _ := media["schema"].(map[string]any)
	kind = "application/json"
	if g.IntN(20) == 0 {
		return pick(g, "", "{", "[]", "null", strings.Repeat("[", 10_000), `{"a":1,"a":2}`, "\xff"), pick(g, kind, "", "text/plain", "application/merge-patch+json")
	}
	text, err := json.Marshal(g.value("", schema, 0))
	if err != nil {
		return "{}", kind
	}
	return string(text), kind
}

// perOperation is the number of requests of TestGeneratedRequests for each operation.
const perOperation = 60

// TestGeneratedRequests sends generated requests, valid and invalid ones, for each operation of
// the OpenAPI document to a running server: none is answered with 5xx, or with an answer that
// the document does not describe.
func TestGeneratedRequests(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Leases, s.Unknowns = someLeases(), someUnknowns() })
	tokens := []string{secret, secret, secret, s.token(t, pools.RoleViewer), s.token(t, pools.RoleOperator), s.token(t, pools.RoleOperator, "storage"), "none"}
	server := httptest.NewServer(s.http)
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	g := &generator{c: theContract()}
	good := map[string]int{}
	for _, path := range sortedKeys(g.c.at("paths")) {
		for _, method := range sortedKeys(g.c.at("paths", path)) {
			if path == api.NodesPath+"/{name}" { // one that can be changed
				s.do(request{method: "POST", path: api.NodesPath, body: n3})
			}
			// Each has a seed of its own: a new operation changes the requests of no other one.
			seed := sha256.Sum256([]byte(method + " " + path))
			g.Rand = rand.New(rand.NewChaCha8(seed))
			for range perOperation {
				r := g.request(server.URL, method, path, g.c.at("paths", path, method))
				if r == nil {
					continue
				}
				r.Header.Set("Authorization", "Bearer "+pick(g, tokens...))
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode >= 500 {
					body, _ := io.ReadAll(resp.Body)
					t.Errorf("%s %s: %d %s", r.Method, r.URL, resp.StatusCode, body)
				} else {
					checkAnswer(t, r, resp)
				}
				resp.Body.Close()
				if resp.StatusCode < 300 {
					good[method]++
				}
			}
		}
	}
	for _, method := range []string{"get", "post", "patch", "put", "delete"} {
		if good[method] == 0 {
			t.Errorf("no generated request of %s was good: %v", method, good)
		}
	}
	if strings.Contains(s.log.String(), "panic") {
		t.Errorf("the log has a panic:\n%s", s.log)
	}
}

func sortedKeys(m map[string]any) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
