package main

import (
	"os"
	"strings"
	"testing"

	"drover/pools/config"
)

// TestReadmeConfig checks the config in the README.
func TestReadmeConfig(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(readme), "```yaml\n")
	text, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("README.md has no YAML block")
	}
	farm, err := config.Parse("README.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(farm.Nodes()) != 2 || len(farm.Config.Pools) != 2 {
		t.Errorf("got %d nodes in %d pools, want 2 in 2", len(farm.Nodes()), len(farm.Config.Pools))
	}
}
