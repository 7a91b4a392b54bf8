package jsonpath_test

import (
	"testing"

	"drover/cmd/drover/cli/jsonpath"
)

func TestTemplate(t *testing.T) {
	v := []map[string]any{{"name": "m1", "macs": []string{"a", "b"}, "labels": map[string]string{"x.org/y": "z"}}, {"name": "m2", "n": 3, "size": 123456789}}
	for text, want := range map[string]string{
		"{[0].name}": "m1", "[1].name": "m2", "{[*].name}": "m1 m2", "{[-1].n}": "3", "{[0].macs[*]}": "a b", "{[0].labels['x.org/y']}": "z",
		`{[0].name}={[1].n}\n`: "m1=3\n", `{[0].name}{"\t"}{[1].name}`: "m1\tm2", "{[7].name}": "", "{.name}": "", "{[0].macs}": `["a","b"]`, "{$[0].labels.*}": "z",
		"{[1].*}": "3 m2 123456789", "{[1].size}": "123456789", "{[1]}": `{"n":3,"name":"m2","size":123456789}`,
	} {
		x, err := jsonpath.Parse(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := x.Execute(v); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"{name", "{..name}", "{[?(@.x)]}", "{range .items[*]}", "name"} {
		if _, err := jsonpath.Parse(text); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
