package crd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/deploy/crd"
	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config/decode"
)

const (
	chart = "../charts/drover/crds"
	page  = "../../docs/objects.md"
)

func definitions(t *testing.T) []*crd.Definition {
	t.Helper()
	all, err := crd.Definitions("../../pools")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDefinitions keeps the chart's CustomResourceDefinitions equal to the types.
func TestDefinitions(t *testing.T) {
	files := map[string]bool{}
	for _, d := range definitions(t) {
		doc, err := decode.Document(d)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		text.WriteString("# Made from the types of package pools by: go test ./deploy/crd -update\n")
		if err := decode.Write(&text, doc); err != nil {
			t.Fatal(err)
		}
		name := d.Spec.Names.Plural + ".yaml"
		files[name] = true
		fixture.Golden(t, filepath.Join(chart, name), text.Bytes())
	}
	found, err := os.ReadDir(chart)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !files[f.Name()] {
			t.Errorf("%s: %s is of no kind", chart, f.Name())
		}
	}
	if len(files) != len(pools.ObjectKinds) {
		t.Errorf("%d files for %d kinds", len(files), len(pools.ObjectKinds))
	}
}

// TestExplained: kubectl explain has a text for each field, and kubectl get a column with Ready
// for each kind.
func TestExplained(t *testing.T) {
	var explained func(place string, s *crd.Schema)
	explained = func(place string, s *crd.Schema) {
		if s == nil {
			return
		}
		for name, field := range s.Properties {
			if field.Description == "" && place+"."+name != ".metadata" {
				t.Errorf("%s.%s has no description", place, name)
			}
			explained(place+"."+name, field)
		}
		explained(place+"[]", s.Items)
		explained(place+"[]", s.Additional)
	}
	for _, d := range definitions(t) {
		for _, v := range d.Spec.Versions {
			explained("", v.Schema.OpenAPI)
			if !slices.ContainsFunc(v.Columns, func(c crd.Column) bool { return c.Name == "Ready" }) {
				t.Errorf("kind %s has no column Ready", d.Spec.Names.Kind)
			}
		}
	}
}

// TestReference keeps the reference in the manual equal to the types.
func TestReference(t *testing.T) {
	const mark = "<!-- The rest is made by: go test ./deploy/crd -update -->\n"
	text := fixture.ReadFile(t, page)
	before, _, ok := strings.Cut(text, mark)
	if !ok {
		t.Fatalf("%s has no line %q", page, mark)
	}
	fixture.Golden(t, page, before+mark+crd.Reference(definitions(t)))
}
