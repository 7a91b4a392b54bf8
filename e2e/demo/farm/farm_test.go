package main

import (
	"testing"
)

// TestRackAndObjectsAgree: the objects have a place for each machine, and the demo's edit of
// one only moves that machine, to another tenant.
func TestRackAndObjectsAgree(t *testing.T) {
	farm, err := readFarm(".")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ node, before, after string }{
		"bios":  {"a1", "tenant-a", "tenant-b"},
		"uefi":  {"b1", "tenant-b", "tenant-b"},
		"stray": {"node-52540077000c", "tenant-a", "tenant-a"},
	}
	check := func(when string, tenant func(name string) string) {
		t.Helper()
		for _, m := range rackful() {
			plan, err := farm.plan(m.MAC())
			if err != nil {
				t.Fatal(err)
			}
			if plan == nil || plan.Node != want[m.Name].node || plan.Cluster != tenant(m.Name) {
				t.Errorf("%s, %s: got %+v, want %s in %s", when, m.Name, plan, want[m.Name].node, tenant(m.Name))
			}
		}
	}
	check("before the edit", func(name string) string { return want[name].before })
	patch, err := farm.movedTo("a1", "b-compute")
	if err != nil || patch != `{"spec": {"pool": "b-compute"}}` {
		t.Errorf("patch %s, %v", patch, err)
	}
	check("after the edit", func(name string) string { return want[name].after })
}
