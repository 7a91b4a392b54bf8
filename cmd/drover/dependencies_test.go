package main

import (
	"os"
	"strings"
	"testing"
)

// TestDependencies compares the direct dependencies with testdata/dependencies.txt,
// which has a line with the reason for each.
func TestDependencies(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("testdata/dependencies.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for line := range strings.Lines(string(list)) {
		module, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		reasons[module] = strings.TrimSpace(reason)
	}
	for line := range strings.Lines(string(mod)) {
		word := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(word) != 2 || !strings.HasPrefix(word[1], "v") || !strings.Contains(word[0], ".") {
			continue // an indirect one has a comment
		}
		if reasons[word[0]] == "" {
			t.Errorf("%s is a direct dependency without a reason in testdata/dependencies.txt", word[0])
		}
		delete(reasons, word[0])
	}
	for module := range reasons {
		t.Errorf("%s is in testdata/dependencies.txt, and is no direct dependency", module)
	}
}
