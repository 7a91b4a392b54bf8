package main

import (
	"strings"
	"testing"

	"drover/e2e/fixture"
)

// TestImportConfigApply: the nodes go to a running server in one step, and the same import
// changes nothing a second time.
func TestImportConfigApply(t *testing.T) {
	apiSite(t)
	fixture.Tree(t, nil)
	t.Chdir(fixture.Tree(t, map[string]string{"t.csv": "name,mac,ip,pool\nw1,02:00:00:00:00:01,10.28.9.1,compute\nw2,02:00:00:00:00:02,10.28.9.2,compute\n"}))
	code, out, errs := drover(t, "import csv t.csv --subnet 10.28.0.0/16 --apply")
	if code != 0 || !strings.Contains(out, "+ node w1") || !strings.Contains(out, "2 nodes: 2 new") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	before := storedNodes(t)
	fixture.WantText(t, "the stored nodes", before, "w1", "10.28.9.2")
	if code, out, errs := drover(t, "import csv t.csv --subnet 10.28.0.0/16 --apply"); code != 0 || !strings.Contains(out, "2 nodes: 2 same") {
		t.Errorf("again: exit %d\n%s%s", code, out, errs)
	}
	if now := storedNodes(t); now != before {
		t.Errorf("the stored nodes have changed:\n%s", now)
	}
}
