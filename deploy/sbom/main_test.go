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
		if c.Version == "" || refs[c.BOMRef] || c.Licenses == nil || c.PackageURL == "" || strings.Contains(c.PackageURL, "+") {
			t.Errorf("component %+v", c)
		}
		refs[c.BOMRef] = true
	}
	if c := bom.Metadata.Component; c.Name != filepath.Base(self) || !strings.HasPrefix(c.PackageURL, "pkg:golang/drover@") || len(refs) == 0 {
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

// TestNotices: each module is there, and each text once.
func TestNotices(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := run(&b, []string{"-notices", self, self}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nstd ", "\ngithub.com/CycloneDX/cyclonedx-go v", "Apache License", "The Go Authors"} {
		if n := strings.Count(b.String(), want); n == 0 || strings.HasPrefix(want, "\n") && n > 1 {
			t.Errorf("%d times %q in\n%s", n, want, b.String())
		}
	}
}

// TestEmbedded: the page's htmx has a version, and its licence.
func TestEmbedded(t *testing.T) {
	from, err := find(nil)
	if err != nil {
		t.Fatal(err)
	}
	htmx, err := from.embedded()
	if err != nil {
		t.Fatal(err)
	}
	if c := htmx.component(); !strings.HasPrefix(c.PackageURL, "pkg:npm/htmx.org@4.") || c.Licenses == nil || (*c.Licenses)[0].License.ID != "0BSD" {
		t.Errorf("got %+v", c)
	}
}

// A plus in a package URL stands for a blank.
func TestPackageURL(t *testing.T) {
	const want = "pkg:golang/github.com/docker/cli@v29.7.2%2Bincompatible"
	if got := packageURL("golang", "github.com/docker/cli", "v29.7.2+incompatible"); got != want {
		t.Errorf("got %s, want %s", got, want)
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
