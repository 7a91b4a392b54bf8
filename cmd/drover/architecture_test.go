package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitecture: ARCHITECTURE.md names folders, functions and types that exist, and
// stays at two pages.
func TestArchitecture(t *testing.T) {
	b, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if n := strings.Count(text, "\n"); n > 150 {
		t.Errorf("ARCHITECTURE.md has %d lines, two pages have 150", n)
	}
	var code strings.Builder
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		b, err := os.ReadFile(path)
		code.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`([A-Za-z][\\w./*-]*)`").FindAllStringSubmatch(text, -1) {
		switch name := m[1]; {
		case strings.Contains(name, "/"):
			if found, _ := filepath.Glob("../../" + name); len(found) == 0 {
				t.Errorf("%s does not exist", name)
			}
		case strings.Contains(name, ".") && filepath.Ext(name) != ".go":
			last := name[strings.LastIndex(name, ".")+1:]
			if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type )` + last + `\b`).MatchString(code.String()) {
				t.Errorf("%s is declared nowhere", name)
			}
		}
	}
}
