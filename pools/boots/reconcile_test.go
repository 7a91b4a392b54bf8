package boots_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/boots"
)

// TestReconcile: boots of removed nodes go for good, those of renamed nodes follow them, and
// machines that no node declares are left alone until one does.
func TestReconcile(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	for n := range 3 {
		b.Discover(declared(n+1), c.now)
	}
	b.Discover(plan(4), c.now)
	names := func() string {
		var all []string
		for _, r := range b.List() {
			all = append(all, fmt.Sprintf("%s=%s,%t", r.MAC.String()[15:], r.Node, r.Unknown))
		}
		return strings.Join(all, " ")
	}
	nodes := map[pools.MAC]string{mac(1): "m1", mac(2): "renamed"}
	nodeOf := func(m pools.MAC, _ string) string { return nodes[m] }
	for _, step := range []struct{ name, want string }{
		{"3 is removed and 2 renamed", "04=node-525400000004,true 02=renamed,false 01=m1,false"},
		{"4 is declared", "04=adopted,false 02=renamed,false 01=m1,false"},
		{"all are removed", ""},
	} {
		switch step.name {
		case "4 is declared":
			nodes[mac(4)] = "adopted"
		case "all are removed":
			clear(nodes)
		}
		b.Reconcile(nodeOf)
		if got := names(); got != step.want {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
		b = d.reopen(t, b, c)
		if got := names(); got != step.want {
			t.Errorf("%s, after a restart: got %s, want %s", step.name, got, step.want)
		}
	}
	if got := boots.MarkStuck(b.List(), c.now); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}
