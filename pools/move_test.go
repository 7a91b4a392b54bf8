package pools_test

import (
	"testing"

	"drover/pools"
)

func TestMoveSummary(t *testing.T) {
	for want, m := range map[string]pools.Move{
		"moving from a to b: drains, 2 pods left": {Node: "n", From: "a", To: "b", As: "n", Step: pools.MoveDrains, Detail: "2 pods left"},
		"moving from a to no cluster: drained":    {Node: "n", From: "a", As: "n", Step: pools.MoveDrained},
		"moving in a from node-1 to n: begun":     {Node: "node-1", From: "a", To: "a", As: "n", Step: pools.MoveBegun},
	} {
		if got := m.Summary(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
