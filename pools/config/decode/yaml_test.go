package decode_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	kubernetes "sigs.k8s.io/yaml"

	"drover/pools/config/decode"
)

// written returns a value as YAML.
func written(t *testing.T, v any) []byte {
	t.Helper()
	doc, err := decode.Document(v)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := decode.Write(&b, doc); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestOldScalars: kubectl reads a text as that text, also one that YAML 1.1 has another type for.
func TestOldScalars(t *testing.T) {
	v := map[string]any{}
	for s := range strings.FieldsSeq("y Y yes Yes YES n N no No NO on On ON off Off OFF true false null ~ = 1:30 -1:30 190:20:30 190:20:30.15 " +
		"52:54:00:12:34:56 010 0644 0o14 0O14 0x1F 0b11 1_000 1e3 .5 +.inf .nan 2001-01-01 12 -3 1.0 10.28.0.1 debian-12 tty0 yes, a:b") {
		v[s] = map[string]any{"value": s, "list": []any{s}}
	}
	text := written(t, v)
	var got any
	if err := kubernetes.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, any(v)) {
		t.Errorf("got %v\nof %s", got, text)
	}
	for _, want := range []string{"\n\"yes\":\n", `value: "0o14"`, `- "1:30"`, "value: 10.28.0.1\n", "\ndebian-12:\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// FuzzDocument writes texts as keys and values; kubectl and drover read them as they were.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{"yes", "1:30", "0o7", "a\nb", " x", "#", "-", "? ", "\u0085", "\ufeff", "''", `"`, "0_7", "!!str"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(map[string]any{s: []any{s, map[string]any{"a": s}}})
		var v, got, own any
		if err != nil || json.Unmarshal(b, &v) != nil || len(s) > 100 || s == "<<" { // long keys are written as ? key, and << is for both readers no key
			return
		}
		text := written(t, v)
		if err := kubernetes.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("kubectl reads %q as %v, %v", text, got, err)
		}
		docs, err := decode.Documents("x.yaml", text)
		if err != nil || len(docs) != 1 || json.Unmarshal(docs[0], &own) != nil || !reflect.DeepEqual(own, v) {
			t.Errorf("drover reads %q as %v, %v", text, own, err)
		}
	})
}

// TestDocuments: keys are text, whatever they look like, and what is not YAML has a line.
func TestDocuments(t *testing.T) {
	for in, want := range map[string]string{
		"a: {42: 10.28.0.1, true: x, 0x10: y, on: z, 1.5: 2}": `{"a":{"0x10":"y","1.5":2,"42":"10.28.0.1","on":"z","true":"x"}}`,
		"a: &a {1: x}\nb: {<<: *a, 2: y}\nc: *a":              `{"a":{"1":"x"},"b":{"1":"x","2":"y"},"c":{"1":"x"}}`,
		"---\n---\n[1, {2: null}]\n---\nx: 1":                 `[1,{"2":null}] {"x":1}`,
		"":                                                    "",
		"a: 1\nb: c: d":                                       "x.yaml:2: not YAML: mapping values are not allowed in this context (mind the indentation and the quotes)",
		"a: 1\n---\nb:\n\t- c":                                "x.yaml:4: not YAML: found character that cannot start any token (indent with spaces, not tabs)",
		"a: 1\na: 2":                                          `x.yaml:2: not YAML: mapping key "a" already defined at line 1 (mind the indentation and the quotes)`,
		"a: &a [*a]":                                          "x.yaml:1: not YAML: anchor 'a' value contains itself (mind the indentation and the quotes)",
	} {
		docs, err := decode.Documents("x.yaml", []byte(in))
		got := string(bytes.Join(docs, []byte(" ")))
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
