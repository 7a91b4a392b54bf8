package openapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"drover/web/api"
)

// TestOpenAPILint: the document has what linters ask for, and what makers of clients need.
func TestOpenAPILint(t *testing.T) {
	c := newContract(t, (&api.API{}).Routes())
	text, err := json.Marshal(c.doc)
	if err != nil {
		t.Fatal(err)
	}
	if servers, _ := c.doc["servers"].([]any); len(servers) == 0 {
		t.Error("no servers")
	}
	if c.at("info", "license")["name"] == nil {
		t.Error("no license")
	}
	for name := range c.at("components", "schemas") {
		if !strings.Contains(string(text), `"#/components/schemas/`+name+`"`) {
			t.Errorf("nothing uses %s", name)
		}
	}
	body := func(path, method string) map[string]any {
		t.Helper()
		ref, _ := c.at("paths", path, method, "requestBody", "content", "application/json", "schema")["$ref"].(string)
		return c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	for _, tt := range []struct {
		path, method string
		required     []any
		good, bad    []string
	}{
		{"/api/v1/nodes", "post", []any{"pool", "name"}, []string{`{"pool": "p", "name": "n"}`, `{"pool": "p", "name": "n", "match": {"uuid": "x"}, "tags": []}`},
			[]string{`{"name": "n"}`, `{"pool": "p"}`, `{"pool": "p", "name": null}`, `{"pool": "p", "name": "n", "tags": null}`, `{"pool": "p", "name": "n", "match": {"uuid": null}}`}},
		{"/api/v1/nodes/{name}", "patch", nil, []string{`{}`, `{"ip": null, "match": {"uuid": null}}`}, []string{`{"tags": [null]}`}},
		{"/api/v1/nodes:batch", "post", []any{"changes"}, []string{`{"changes": [{"old": null, "new": {"pool": "p", "name": "n"}}]}`}, []string{`{}`, `{"changes": [{"new": {"name": "n"}}]}`}},
		{"/api/v1/nodes/{name}/next-boot", "put", []any{"nextBoot"}, []string{`{"nextBoot": "local"}`, `{"nextBoot": "image=debian-12"}`}, []string{`{}`, `{"nextBoot": "disk"}`, `{"nextBoot": null}`}},
		{"/api/v1/power", "post", []any{"action"}, []string{`{"action": "pxe", "nodes": ["n"]}`}, []string{`{}`, `{"action": "reboot"}`}},
		{"/api/v1/tokens", "post", []any{"name", "role"}, []string{`{"name": "ci", "role": "viewer"}`}, []string{`{"name": "ci"}`, `{"name": "ci", "role": "viewer", "pools": null}`}},
	} {
		schema := body(tt.path, tt.method)
		if schema == nil {
			t.Errorf("%s %s: no body", tt.method, tt.path)
			continue
		}
		required, _ := schema["required"].([]any)
		if !slices.Equal(required, tt.required) {
			t.Errorf("%s %s requires %v, want %v", tt.method, tt.path, required, tt.required)
		}
		for i, text := range append(slices.Clone(tt.good), tt.bad...) {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			err := c.validate(v, "paths", tt.path, tt.method, "requestBody", "content", "application/json", "schema")
			if good := i < len(tt.good); (err == nil) != good {
				t.Errorf("%s %s: %s: %v", tt.method, tt.path, text, err)
			}
		}
	}
}
