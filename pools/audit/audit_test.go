package audit_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/audit"
)

// TestChanges: the audit has what a change of a node changes, bounded, and no secret.
func TestChanges(t *testing.T) {
	node := func(edit ...func(*pools.PoolNode)) *pools.PoolNode {
		n := &pools.PoolNode{Pool: "web", Node: pools.Node{Name: "m1", MACs: []pools.MAC{{2, 0, 0, 0, 0, 1}}, IP: netip.MustParseAddr("10.28.0.1")}}
		for _, e := range edit {
			e(n)
		}
		return n
	}
	moved := node(func(n *pools.PoolNode) { n.Pool, n.Tags = "db", []string{"fast"} })
	powered := node(func(n *pools.PoolNode) {
		n.Power = &pools.NodePower{Driver: pools.IPMI, Options: []string{"-P", "hunter2"}}
	})
	for _, tt := range []struct {
		change pools.NodeChange
		want   string
	}{
		{pools.NodeChange{Old: node(), New: node()}, "[]"},
		{pools.NodeChange{Old: node(), New: moved}, `[{pool web db} {tags  ["fast"]}]`},
		{pools.NodeChange{New: node()}, `[{ip  10.28.0.1} {macs  ["02:00:00:00:00:01"]} {name  m1} {pool  web}]`},
		{pools.NodeChange{Old: node()}, `[{ip 10.28.0.1 } {macs ["02:00:00:00:00:01"] } {name m1 } {pool web }]`},
		{pools.NodeChange{Old: node(), New: powered}, "[]"},
	} {
		if got := fmt.Sprint(audit.Changes(tt.change)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	long := node(func(n *pools.PoolNode) { n.Tags = []string{strings.Repeat("x", 10_000)} })
	if got := len(fmt.Sprint(audit.Changes(pools.NodeChange{Old: node(), New: long}))); got > 400 {
		t.Errorf("a long value takes %d bytes", got)
	}
}
