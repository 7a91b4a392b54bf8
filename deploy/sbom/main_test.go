package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// The test's own program is one of Go.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := run(w, []string{self}); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two runs differ")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{}
	for _, c := range *bom.Components {
		if c.Version == "" || refs[c.BOMRef] {
			t.Errorf("component %+v", c)
		}
		refs[c.BOMRef] = true
	}
	if bom.Metadata.Component.Name != filepath.Base(self) || len(refs) == 0 {
		t.Errorf("component %+v, %d modules", bom.Metadata.Component, len(refs))
	}
	for _, d := range *bom.Dependencies {
		for _, ref := range *d.Dependencies {
			if !refs[ref] {
				t.Errorf("%s is no component", ref)
			}
		}
	}
}

func TestNoProgram(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, programs := range [][]string{nil, {text}, {"missing"}} {
		if err := run(&bytes.Buffer{}, programs); err == nil || !strings.Contains(err.Error(), "program") {
			t.Errorf("%q: %v", programs, err)
		}
	}
}
