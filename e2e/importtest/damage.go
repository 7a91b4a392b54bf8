package importtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"drover/migrate"
	"drover/pools/config"
)

// wrong returns values of another kind than one. None of them is an empty one, which may mean that
// there is no rule.
func wrong(kind yaml.Kind) []string {
	switch kind {
	case yaml.MappingNode:
		return []string{"[[x]]", "-1"}
	case yaml.SequenceNode:
		return []string{"{x: {x: x}}", "[[x]]", "\"\\u2603 {{ x }}\""}
	}
	return []string{"{x: {x: x}}", "[{x: x}, [-1]]"}
}

// Damage imports a text of YAML or JSON with each of its values in turn replaced by ones of
// another kind. It fails the test when such a config opens a range that the whole one does not:
// what is not understood must keep machines out. An error is an answer, too.
func Damage(t testing.TB, read func(*migrate.Farm, []string) error, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "input")
	open := func(text string) ([]string, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		i := migrate.Import{Options: migrate.Options{Interfaces: []string{"eth1"}}, Read: func(f *migrate.Farm) error { return read(f, []string{file}) }}
		r, err := i.Run(t.Context())
		if err != nil {
			return nil, err
		}
		farm, err := config.Parse("drover.yaml", r.Config())
		if err != nil {
			return nil, err // no server takes it
		}
		return Open(&farm.Config), nil
	}
	allowed, err := open(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for n, kind := range kinds(t, text) {
		for _, w := range wrong(kind) {
			damaged, path := replaced(t, text, n, w)
			now, err := open(damaged)
			if more := slices.DeleteFunc(now, func(r string) bool { return slices.Contains(allowed, r) }); err == nil && len(more) > 0 {
				t.Errorf("with %s at %s these are open, too: %q", w, path, more)
			}
		}
	}
}

// Refused imports hostile texts of YAML or JSON, and fails the test unless each is an error:
// deep ones, those with references that grow or never end, and large ones.
func Refused(t testing.TB, read func(*migrate.Farm, []string) error) {
	t.Helper()
	dir := t.TempDir()
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range byte(9) {
		was, now := "a"+string('0'+i), "a"+string('1'+i)
		laughs.WriteString(now + ": &" + now + " [" + strings.Repeat("*"+was+", ", 10) + "x]\n")
	}
	for name, text := range map[string]string{
		"empty": "", "binary": "\x00\x01\xff", "a text": "hello\n", "cut short": "{\"a\": [", "another format": "{\"a\": 1}",
		"deep list": strings.Repeat("[", 20_000), "deep map": strings.Repeat("{\"a\":", 20_000), "deep block": strings.Repeat("- ", 20_000) + "x",
		"references that grow": laughs.String(), "reference to itself": "a: &a [*a]\n", "merge of itself": "a: &a\n  <<: *a\n", "unknown reference": "a: *b\n", "key twice": "a: 1\na: 2\n",
	} {
		file := filepath.Join(dir, "input")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := read(migrate.NewFarm(migrate.Options{}), []string{file}); err == nil {
			t.Errorf("%s: it is read without an error", name)
		}
	}
	huge := filepath.Join(dir, "huge")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{huge, dir + "/none", "/dev/zero"} {
		if err := read(migrate.NewFarm(migrate.Options{}), []string{file}); err == nil {
			t.Errorf("%s: it is read without an error", file)
		}
	}
}

// values calls each with every value of a tree, and with its place.
func values(n *yaml.Node, path string, each func(path string, n *yaml.Node)) {
	switch n.Kind {
	case yaml.DocumentNode:
		values(n.Content[0], path, each)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			each(path+"/"+n.Content[i].Value, n.Content[i+1])
			values(n.Content[i+1], path+"/"+n.Content[i].Value, each)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			each(path+"[]", item)
			values(item, path+"[]", each)
		}
	}
}

func parsed(t testing.TB, text string) *yaml.Node {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return &doc
}

// kinds returns the kind of each value of a text.
func kinds(t testing.TB, text string) (all []yaml.Kind) {
	t.Helper()
	values(parsed(t, text), "", func(_ string, v *yaml.Node) { all = append(all, v.Kind) })
	return all
}

// replaced returns a text with another value in place of its nth one, and where that is.
func replaced(t testing.TB, text string, nth int, with string) (damaged, path string) {
	t.Helper()
	doc, n := parsed(t, text), 0
	var at *yaml.Node
	values(doc, "", func(p string, v *yaml.Node) {
		if n++; n-1 == nth {
			at, path = v, p
		}
	})
	*at = *parsed(t, with).Content[0]
	out, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), path
}
