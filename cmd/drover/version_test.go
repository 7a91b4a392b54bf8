package main

import (
	"os"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

// TestOneVersion: what is not built from pools.Version agrees with it.
func TestOneVersion(t *testing.T) {
	for file, want := range map[string]string{
		"../../CHANGELOG.md":                    "\n## " + pools.Version + "\n",
		"../../deploy/charts/drover/Chart.yaml": "\nversion: " + pools.Version + "\n",
		"../../docs/farm.md":                    "localhost/drover:" + pools.Version,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fixture.WantText(t, file, string(text), want)
	}
	text, err := os.ReadFile("../../deploy/charts/drover/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "the chart", string(text), "\nappVersion: \""+pools.Version+"\"\n")
}
